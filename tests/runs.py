"""Opens runs over files in tests, by their parts."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from axformer.config import Preset, PublishedConfig, RunConfig
from axformer.data.columns import DataSource
from axformer.methods.progress import Progress, meter_of
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.heads import NewHead
from axformer.wire.run import SettledRun, read_run


def run_of(
    checkpoint: str | Path,
    validation: DataSource,
    *,
    config: RunConfig | None = None,
    finetune: FinetuneSettings | None = None,
    head: NewHead | None = None,
    **data: DataSource | None,
) -> SettledRun:
    """A run with these knobs; without any those of the preset ``paper``."""
    preset = Preset.PUBLISHED if isinstance(config, PublishedConfig) else Preset.PAPER
    sources = {part: None if source is None else _reference(source) for part, source in data.items()}
    knobs = {} if config is None else config.model_dump(mode="json", exclude_unset=True) | {"method": config.method}
    fields = {"checkpoint": str(checkpoint), "validation": _reference(validation), **sources}
    return read_run(fields | {"finetune": finetune, "head": head, "preset": preset, "config": knobs}).settled()


def _reference(source: DataSource) -> dict[str, Any]:
    return {"uri": str(source.path), "columns": source.columns}


def open_run(
    checkpoint: str | Path,
    validation: DataSource,
    *,
    device: str = "cpu",
    names: Mapping[str, str] | None = None,
    surroundings: Surroundings | None = None,
    **parts: Any,
) -> PruningRun:
    """Open such a run."""
    settled = run_of(checkpoint, validation, **parts)
    return PruningRun.open(settled, device=device, names=names, surroundings=surroundings)


def progress_of(trials: Iterable[Trial], dimensions: Dimensions, config: RunConfig, *, ended: bool = False) -> Progress:
    """The progress of a run with these trials."""
    meter = meter_of(dimensions, config)
    meter.add(trials)
    return meter.progress(ended=ended)
