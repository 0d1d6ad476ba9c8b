"""The knobs of a pass, for forms and for people."""

from typing import Any

from api.schemas.base import Schema
from axformer.config import Preset


class KnobRead(Schema):
    """One knob."""

    name: str
    default: Any
    """Its value in the preset ``paper``."""
    reason: str
    """What it does and why it has this default."""
    accepts: dict[str, Any]
    """Type, range and choices as JSON Schema."""


class KnobsRead(Schema):
    """All knobs, and what the presets set."""

    knobs: list[KnobRead]
    presets: dict[str, dict[str, Any]]
    """Every knob with its value, by preset."""
    default_preset: Preset
    """That of a job which names none."""
