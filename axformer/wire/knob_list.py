"""The knobs as the library declares them: name, default, accepted values, methods, and reason."""

from typing import Any

from axformer.config import (
    DEFAULT_METHOD,
    DEFAULT_PRESET,
    METHODS,
    PUBLISHED_ONLY,
    Preset,
    PublishedConfig,
    RunConfig,
    config_of,
    make_config,
)
from axformer.wire.base import Schema


class KnobRead(Schema):
    """One knob."""

    name: str
    default: Any
    """Its value where nothing else is said."""
    reason: str
    """What it does and why it has this default."""
    accepts: dict[str, Any]
    """Type, range and choices as JSON Schema."""
    methods: tuple[str, ...] = ()
    """The methods that have it."""
    paper_only: bool = False
    """Whether only the preset `published` has it, to reproduce the authors' program or a row of one of the paper's tables."""


class KnobsRead(Schema):
    """All knobs, and what the presets set."""

    knobs: list[KnobRead]
    presets: dict[str, dict[str, Any]]
    """Every knob with its value, by preset."""
    default_preset: Preset
    """That of a job which names none."""


_OWN = "method"
"""The knob that names the method itself."""


def list_knobs() -> KnobsRead:
    """All knobs and presets; a knob of several methods is listed once, as in the first of them."""
    knobs: dict[str, KnobRead] = {}
    listed: list[tuple[str, type[RunConfig]]] = [*METHODS.items(), (DEFAULT_METHOD, PublishedConfig)]
    for method, config in listed:
        made = config_of({_OWN: method}, has_variant=config is PublishedConfig)
        schema, defaults = config.model_json_schema(), made.model_dump(mode="json")
        definitions = schema.get("$defs", {})
        for name, about in schema["properties"].items():
            if name in knobs:
                methods = dict.fromkeys((*knobs[name].methods, method))
                knobs[name] = knobs[name].model_copy(update={"methods": tuple(methods)})
                continue
            knobs[name] = KnobRead(
                name=name,
                default=defaults[name],
                reason=about.get("description", ""),
                accepts={"enum": list(METHODS), "type": "string"} if name == _OWN else _accepts(about, definitions),
                methods=(method,),
                paper_only=name in PUBLISHED_ONLY,
            )
    return KnobsRead(
        knobs=list(knobs.values()),
        presets={preset.value: make_config(preset).model_dump(mode="json") for preset in Preset},
        default_preset=DEFAULT_PRESET,
    )


def _accepts(about: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The knob's JSON Schema with all references resolved, so that a form needs nothing else."""
    accepted = {key: value for key, value in about.items() if key not in ("title", "description", "default", "$ref")}
    if "$ref" in about:
        referred = definitions[about["$ref"].rpartition("/")[2]]
        accepted |= {key: value for key, value in referred.items() if key not in ("title", "description")}
    return accepted
