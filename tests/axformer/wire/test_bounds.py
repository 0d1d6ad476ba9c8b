"""Each part of a report has a bound: what is longer is refused by name, and what is as long is taken."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from axformer.intake import limits
from axformer.wire import bounds
from axformer.wire.analysis import Analysis
from axformer.wire.report import Report

UNKNOWN = {"settings", "config", "environment", "int8"}
"""Parts whose fields depend on a version or a machine; their bytes are bounded."""
FEW = 20_000
"""So many entries are quick to make."""
Place = tuple[str, ...]


class Form:
    """The JSON schema of a report, and values of it."""

    def __init__(self, shape: type[BaseModel]) -> None:
        self.whole = shape.model_json_schema()
        self.defs = self.whole["$defs"]

    def told(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def minimal(self, schema: Mapping[str, Any]) -> Any:
        """The shortest value."""
        schema = self.told(schema)
        if "anyOf" in schema:
            return self.minimal(schema["anyOf"][0])
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        if "prefixItems" in schema:
            return [self.minimal(one) for one in schema["prefixItems"]]
        if "properties" in schema:
            return {name: self.minimal(schema["properties"][name]) for name in schema.get("required", ())}
        plain = {"string": "", "array": [], "object": {}, "number": 0.5, "integer": 1, "boolean": False}
        return plain[schema["type"]]

    def parts(self, schema: Mapping[str, Any], place: Place = ()) -> Iterator[tuple[Place, Mapping[str, Any]]]:
        """Every part that may be long, with its place; `*` stands for any entry."""
        schema = self.told(schema)
        for one in schema.get("anyOf", ()):
            yield from self.parts(one, place)
        is_fixed = {"const", "enum", "prefixItems", "properties"} & set(schema)
        if schema.get("type") in ("string", "array", "object") and not is_fixed:
            yield place, schema
        for name, inner in schema.get("properties", {}).items():
            yield from self.parts(inner, (*place, name))
        for inner in (schema.get("items"), schema.get("additionalProperties")):
            if isinstance(inner, Mapping):
                yield from self.parts(inner, (*place, "*"))

    def entries(self, part: Mapping[str, Any], count: int, key: str) -> Any:
        """So many characters, or entries, of a part."""
        if part["type"] == "string":
            return "x" * count
        if part["type"] == "array":
            return [self.minimal(part["items"])] * count
        return dict.fromkeys((f"{key}{number}" for number in range(count)), self.minimal(part["additionalProperties"]))

    def put(self, schema: Mapping[str, Any], place: Place, long: Any) -> Any:
        """The shortest value with something else at a place."""
        if not place:
            return long
        first, *rest = place
        for one in map(self.told, self.told(schema).get("anyOf", (schema,))):
            if first in one.get("properties", {}):
                return {**self.minimal(one), first: self.put(one["properties"][first], tuple(rest), long)}
            if first == "*" and "items" in one:
                return [self.put(one["items"], tuple(rest), long)]
            if first == "*" and isinstance(one.get("additionalProperties"), Mapping):
                return {"1": self.put(one["additionalProperties"], tuple(rest), long)}
        raise AssertionError(f"no {first}")


def refused_by(shape: type[BaseModel], value: Any) -> set[str]:
    """The names in the places of what is wrong."""
    with pytest.raises(ValidationError) as refused:
        shape.model_validate(value)
    return {str(name) for error in refused.value.errors(include_input=False) for name in error["loc"]}


@pytest.mark.parametrize("shape", [Report, Analysis])
def test_each_part_is_taken_up_to_its_bound_and_refused_by_name_beyond_it(shape: type[BaseModel]) -> None:
    form, seen = Form(shape), 0
    for place, part in form.parts(form.whole):
        names = {name for name in place if name != "*"}
        if place[-1] in UNKNOWN:
            assert names <= refused_by(shape, form.put(form.whole, place, {"a": "x" * 2**21}))
            continue
        most = part[{"string": "maxLength", "array": "maxItems", "object": "maxProperties"}[part["type"]]]
        if most <= FEW:
            key = "" if "windows" in place else "a"
            shape.model_validate(form.put(form.whole, place, form.entries(part, most, key)))
            assert names <= refused_by(shape, form.put(form.whole, place, form.entries(part, most + 1, key))), place
        seen += 1
    assert seen > 40


def test_bounds_lie_above_what_intake_admits() -> None:
    assert limits.DIMENSIONS["num_hidden_layers"] <= bounds.LAYERS
    assert bounds.CLASSES >= limits.LABELS
    assert (limits.DIMENSIONS["num_hidden_layers"] + 1) * limits.DIMENSIONS["hidden_size"] <= bounds.DIMENSIONS
    assert limits.DIMENSIONS["num_hidden_layers"] * limits.DIMENSIONS["intermediate_size"] <= bounds.ELEMENTS
    names = Form(Report).whole["$defs"]["ClassChange"]["properties"]["name"]
    assert names["maxLength"] >= limits.NAME_LENGTH
