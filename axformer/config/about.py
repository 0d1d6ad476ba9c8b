"""The description of a method: what is known of it without running it, and what a run of it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class About:
    """What is known of a method without running it. The code that runs it is named as for :func:`pkgutil.resolve_name`, so that
    nothing is imported before it is needed."""

    title: str
    """What people call it."""
    method: str
    """Its :class:`axformer.methods.base.Method`."""
    made: str
    """How a model was made, for its card: a template of ``report`` and ``paper`` that may use the macros of ``words.jinja``."""
    nothing_met: str = "no smaller model was accepted"
    """What it means that nothing was removed, as the end of a sentence: a template of ``config``."""
    meter: str = "axformer.methods.progress:PlanMeter"
    """Its :class:`axformer.methods.progress.Meter`."""
    of_plans: bool = True
    """Whether its trials are of whole plans, and not of single elements."""
    calibrated_with: str | None = None
    """The knob without which calibration data changes nothing; None if it never changes anything."""
    instead_of_points: str = "leave it out with within_points=null"
    """What to do where the metric has no points."""
    finetune_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Its own defaults of the settings of a training."""
    files: tuple[str, ...] = ()
    """The files that it adds to a result."""
    takes_score: bool = False
    """Whether a program may pass in a score of heads and neurons (:data:`axformer.scores.importance.ScoreUnits`)."""
    reports_best: bool = False
    """Whether the card names the best model on the path by held-out figures, as a table of a paper does."""


@dataclass(frozen=True)
class Needs:
    """What a run with some knobs needs and does beside measuring plans."""

    fitting: bool = False
    """The weights that stay are fitted."""
    gradients: bool = False
    """Derivatives are taken, which needs memory for the way back through all layers."""
    calibration: bool = False
    """Calibration data is used."""
    trains_each: bool = False
    """With training data, the model of every trial is trained, and not the kept one alone."""
    polish: int = 0
    """Epochs for which every model is trained on the calibration rows, taught by the untouched model."""
    base: bool = False
    """Models are cut from a base model, where there is one, and not from the one that was trained with its new head."""
    drops: int = 0
    """Layers that every trained model lacks, as far as the knobs alone tell."""
