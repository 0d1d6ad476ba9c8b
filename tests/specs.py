"""Specs of jobs in tests, by their parts."""

from typing import Any

from axformer.config import Preset

_SOURCES = ("checkpoint", "validation", "test", "calibrate", "unlabelled", "train", "against")
_SETTLED = ("preset", "config", "finetune", "forms")
_POSTED = (*_SOURCES, *_SETTLED, "head", "goal", "analysis")


def with_spec(changes: dict[str, Any], **usual: Any) -> dict[str, Any]:
    """The fields of a new job, of which those that say what it does are put into its ``spec``.

    Args:
        changes: fields of a new job and parts of a spec.
        usual: parts of the spec that nothing is said of.
    """
    usual = {"preset": Preset.PAPER.value, "config": {}, "finetune": None, "forms": ["compact"]} | usual
    rest = {name: value for name, value in changes.items() if name not in _POSTED}
    parts = usual | {name: value for name, value in changes.items() if name in _POSTED}
    asked = parts.pop("analysis", None)
    run = {name: value for name, value in parts.items() if value is not None}
    if asked is not None:
        return {"spec": {"run": {part: run[part] for part in _SOURCES if part in run} | asked}} | rest
    return {"spec": {"run": run, **{name: parts[name] for name in _SETTLED}}} | rest


def spec_of(**parts: Any) -> dict[str, Any]:
    """A spec with these parts."""
    plain = {"checkpoint": {"uri": "x"}, "validation": {"uri": "y"}}
    spec: dict[str, Any] = with_spec(plain | parts)["spec"]
    return spec
