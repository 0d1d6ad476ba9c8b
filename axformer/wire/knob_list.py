"""The knobs as the library declares them: name, default, accepted values, methods, and reason."""

from typing import Any

from axformer.config import (
    DEFAULT_METHOD,
    DEFAULT_PRESET,
    METHODS,
    PUBLISHED_ONLY,
    Preset,
    PublishedConfig,
    make_config,
)
from axformer.wire.knobs import KnobRead, KnobsRead

_OWN = "method"
"""The knob that names the method itself."""


def list_knobs() -> KnobsRead:
    """All knobs and presets; a knob of several methods is listed once, as in the first of them."""
    knobs: dict[str, KnobRead] = {}
    for method, config in (*METHODS.items(), (DEFAULT_METHOD, PublishedConfig)):
        schema, defaults = config.model_json_schema(), config().model_dump(mode="json")
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
