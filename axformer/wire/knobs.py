"""The knobs of a pass, for forms and for people."""

from typing import Any

from axformer.config import Preset
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
