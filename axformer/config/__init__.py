"""All knobs with their defaults and the reasons for them; the presets; and configs made from knobs by name.

Knobs are flat: ``method`` selects the way to a smaller model, and thereby the set of knobs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from axformer.config.axformer import HelpedReference, Order, PaperVariant, PassConfig, PublishedConfig
from axformer.config.common import RunConfig
from axformer.config.compress import CompressConfig
from axformer.config.earlier import FOLDS, REMOVED, RENAMED, of_today
from axformer.config.layers import LayersConfig
from axformer.config.nearest import choice_suggestion, or_all
from axformer.config.rank import RankConfig
from axformer.errors import ConfigError, reason_of

__all__ = [
    "CompressConfig",
    "HelpedReference",
    "LayersConfig",
    "Order",
    "PaperVariant",
    "PassConfig",
    "PublishedConfig",
    "RankConfig",
    "RunConfig",
]


class Preset(StrEnum):
    """A named set of knobs."""

    PAPER = "paper"
    PUBLISHED = "published"
    ROBUST = "robust"
    SMALLEST = "smallest"


ABOUT_PRESETS: dict[Preset, str] = {
    Preset.PAPER: "Algorithm 1 of the paper, with neurons in groups of a twelfth, as in the authors' program",
    Preset.PUBLISHED: "the authors' own program, decision by decision",
    Preset.ROBUST: "the paper's rule, but a change must gain on each of five parts of the data",
    Preset.SMALLEST: "compressed without training: the smallest model that has lost less than one point, tested",
}
"""A description of each preset for users."""
DEFAULT_PRESET = Preset.ROBUST
"""Used by the commands and the service if no preset is given."""
_CONFIGS: tuple[type[RunConfig], ...] = (PassConfig, CompressConfig, LayersConfig, RankConfig)
METHODS: dict[str, type[RunConfig]] = {kind.model_fields["method"].default: kind for kind in _CONFIGS}
"""The config class of each method, by its name; its ``about`` describes the method."""
DEFAULT_METHOD = "axformer"
PUBLISHED_ONLY = frozenset(PaperVariant.model_fields)
"""Knobs that only the preset ``published`` has."""
_OWNERS: tuple[type[RunConfig], ...] = (*_CONFIGS, PublishedConfig)
KNOBS = tuple(dict.fromkeys(name for config in _OWNERS for name in config.model_fields))
"""Every knob, by name."""
EARLIER = frozenset(REMOVED) | RENAMED
"""Names of knobs of earlier versions, which stored configs may hold."""


_MOST_NAMED = 8
"""Unknown knobs that an error names; who has more has sent something else."""
PRESETS: dict[Preset, dict[str, Any]] = {
    Preset.PAPER: {},
    Preset.PUBLISHED: {
        "helped_reference": HelpedReference.ORIGINAL,
        "ties_help": True,
        "order": Order.TOP_MIDDLE_BOTTOM,
        "max_length": 128,
    },
    Preset.ROBUST: {"safeguard": FOLDS},
    Preset.SMALLEST: {"method": "compress"},
}


def make_config(preset: str = Preset.PAPER, knobs: Mapping[str, Any] | None = None) -> RunConfig:
    """Make the config of a preset with some knobs changed.

    Raises:
        ConfigError: the preset, the method or a knob is unknown, a value is out of range, or knobs exclude each other.
    """
    if preset not in list(Preset):
        raise ConfigError(f"preset '{preset}' is unknown; {or_all(preset, list(Preset))}")
    chosen, given = PRESETS[Preset(preset)], knobs or {}
    of_preset, method = (some.get("method", DEFAULT_METHOD) for some in (chosen, {**chosen, **given}))
    _check_method(method)
    if chosen and method != of_preset:
        raise ConfigError(f"preset '{preset}' is of method={of_preset}, not of method={method}; {_preset_for(method)}")
    config = config_of({**chosen, **given}, has_variant=preset == Preset.PUBLISHED)
    config.check()
    return config


def usual_preset(knobs: Mapping[str, Any]) -> Preset:
    """The preset of a run that names none: the default one, or if the knobs name another method the first of that method;
    ``paper``, which changes no knob, if it has none."""
    method = knobs.get("method", DEFAULT_METHOD)
    if method == DEFAULT_METHOD:
        return DEFAULT_PRESET
    return next((name for name, chosen in PRESETS.items() if chosen.get("method") == method), Preset.PAPER)


def _check_method(method: Any) -> None:
    if not isinstance(method, str) or method not in METHODS:
        raise ConfigError(f"method {method!r} is unknown; {or_all(method, METHODS)}")


def _preset_for(method: str) -> str:
    own = [name.value for name, knobs in PRESETS.items() if knobs.get("method", DEFAULT_METHOD) == method]
    return f"take {' or '.join(own)}" if own else "leave the preset out"


def config_of(knobs: Mapping[str, Any], *, has_variant: bool = False) -> RunConfig:
    """Make the config of the method named by ``method``; knobs that are not given keep their defaults.

    Args:
        knobs: by name. Those of :class:`PaperVariant` may have the values that other presets have.
        has_variant: whether it is of the preset ``published``, so that they may have any value.

    Raises:
        ConfigError: the method or a knob is unknown, or a value is out of range.
    """
    method = knobs.get("method", DEFAULT_METHOD)
    _check_method(method)
    try:
        if method == DEFAULT_METHOD and has_variant:
            return PublishedConfig(**knobs)
        return METHODS[method](**_without_variant(knobs))
    except ValidationError as error:
        raise ConfigError(_explain(error, method)) from None


def _without_variant(knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs without those that only the preset ``published`` has; these must have the values that other presets have."""
    others = PaperVariant().model_dump(mode="json")
    for name in PUBLISHED_ONLY & knobs.keys():
        value = list(knobs[name]) if isinstance(knobs[name], tuple) else knobs[name]
        if value != others[name]:
            raise ConfigError(
                f"knob {name}={value!r} reproduces the authors' program or a table of the paper; give it with preset=published"
            )
    return {name: value for name, value in knobs.items() if name not in PUBLISHED_ONLY}


def method_of(knobs: Mapping[str, Any]) -> str:
    """The method of a finished run with these knobs."""
    return str(knobs.get("method", DEFAULT_METHOD))


def reading_config(knobs: Mapping[str, Any]) -> RunConfig:
    """The knobs of a finished run that determine how its data was read. Knobs of earlier versions may be unknown."""
    names = ("max_length", "calibrate_rows", "seed")
    return RunConfig(method=method_of(knobs), **{name: knobs[name] for name in names if name in knobs})


def fits_weights(knobs: Mapping[str, Any]) -> bool:
    """Whether a run with these knobs fits the remaining weights. Knobs of earlier versions may be unknown."""
    return knobs.get("repair") == "refit" or knobs.get("refit") is True


def config_class(knobs: Mapping[str, Any]) -> type[RunConfig]:
    """The config class of a finished run's method; the default one's if a newer version has another method."""
    return METHODS.get(method_of(knobs), METHODS[DEFAULT_METHOD])


def defaults_beside(knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The default values of the method's knobs, as in JSON, with those of the preset ``published`` if it has them."""
    has_variant = bool(PUBLISHED_ONLY & knobs.keys())
    return config_of({"method": method_of(knobs)}, has_variant=has_variant).model_dump(mode="json")


def changed_knobs(preset: str, knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs whose values differ from the preset's, as in JSON.

    Args:
        preset: an unknown one, of a newer service, is treated as ``paper``.
        knobs: every knob with its value. Unknown ones, of a newer service, count as changed.
    """
    plain = PaperVariant().model_dump(mode="json")
    plain |= make_config(preset if preset in list(Preset) else Preset.PAPER).model_dump(mode="json")
    return {name: value for name, value in of_today(knobs).items() if name not in plain or plain[name] != value}


def parse_knob(text: str) -> tuple[str, Any]:
    """Parse ``name=value``. The value is read as JSON or, if it is not JSON, as text.

    Raises:
        ConfigError: the text has no ``=``.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"'{text}' is not a knob; write name=value, for example refine_margin=1.2")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):  # also of numbers with thousands of digits, and of lists nested as deeply
        return name, value


def unknown_knobs(names: Iterable[Any], method: str | None = None) -> list[str]:
    """Say of each name that is no knob that it is unknown, with the nearest knob.

    Args:
        names: in any order; those of knobs are passed over.
        method: whose knobs there are; None is those of all methods, also of earlier versions.
    """
    known = KNOBS if method is None else tuple(METHODS[method].model_fields)
    unknown = [name for name in names if name not in known and (method is not None or name not in EARLIER)]
    said = [_unknown_knob(name, known, method) for name in unknown[:_MOST_NAMED]]
    left = len(unknown) - len(said)
    return said + ([f"{left} more knobs are unknown"] if left else [])


def _unknown_knob(name: Any, known: Sequence[str], method: str | None) -> str:
    others = [other for other, kind in METHODS.items() if name in kind.model_fields]
    if others:
        return f"knob '{name}' is of method={others[0]}, not of method={method}"
    return f"knob '{name}' is unknown; {or_all(name, known, 'the knobs are')}"


def _explain(error: ValidationError, method: str) -> str:
    items = error.errors()
    parts = unknown_knobs([item["loc"][0] for item in items if item["type"] == "extra_forbidden"], method)
    for item in items:
        if item["type"] == "extra_forbidden":
            continue
        reason, near = reason_of(item), choice_suggestion(item)
        if item["loc"]:
            reason = f"knob {item['loc'][0]}={item['input']!r}: {reason[0].lower()}{reason[1:]}"
        parts.append(f"{reason}; {near}" if near else reason)
    return "; ".join(parts)
