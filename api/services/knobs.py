"""The knobs of a pass as the library declares them: name, default, what is accepted, and the reason."""

from typing import Any

from api.schemas.knobs import KnobRead, KnobsRead
from axformer.config import DEFAULT_PRESET, PassConfig, Preset, make_config


def list_knobs() -> KnobsRead:
    """All knobs and presets."""
    schema = PassConfig.model_json_schema()
    definitions = schema.get("$defs", {})
    defaults = make_config().model_dump(mode="json")
    knobs = [
        KnobRead(
            name=name,
            default=defaults[name],
            reason=about.get("description", ""),
            accepts=_accepts(about, definitions),
        )
        for name, about in schema["properties"].items()
    ]
    return KnobsRead(
        knobs=knobs,
        presets={preset.value: make_config(preset).model_dump(mode="json") for preset in Preset},
        default_preset=DEFAULT_PRESET,
    )


def _accepts(about: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The knob's own JSON Schema, with what it refers to put in, so that a form needs nothing else."""
    accepted = {key: value for key, value in about.items() if key not in ("title", "description", "default", "$ref")}
    if "$ref" in about:
        referred = definitions[about["$ref"].rpartition("/")[2]]
        accepted |= {key: value for key, value in referred.items() if key not in ("title", "description")}
    return accepted
