"""Pruning a model in memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from axformer.config import Preset, RunConfig, changed_knobs
from axformer.data.columns import DataSource
from axformer.data.reading import rows_of
from axformer.data.records import Records
from axformer.data.rows import Rows
from axformer.errors import ConfigError, WrongTypeError
from axformer.intake.checkpoint import from_memory
from axformer.intake.rebuilt import check_rebuilt
from axformer.opening import fitted_together, for_run, read_data
from axformer.result import Result
from axformer.run import PruningRun
from axformer.scores.importance import ScoreUnits
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.run import IN_MEMORY, SettledRun, read_run

Data = str | Path | Rows | Records
"""A file, rows that were read, records (dicts, possibly from a generator), a dict of columns, or a table of pyarrow, pandas,
polars or datasets."""


def prune(
    model: Any,
    tokenizer: Any = None,
    data: Data | None = None,
    config: RunConfig | Mapping[str, Any] | None = None,
    *,
    goal: str | None = None,
    preset: str | None = None,
    test: Data | None = None,
    calibrate: Data | None = None,
    unlabelled: Data | None = None,
    train: Data | None = None,
    finetune: Mapping[str, Any] | None = None,
    pooling: str | None = None,
    forms: Sequence[str] | None = None,
    output: str | Path | None = None,
    score: ScoreUnits | str | None = None,
    surroundings: Surroundings | None = None,
    **knobs: Any,
) -> Result:
    """Prune a model in memory, which is not changed. Defaults are those of the command ``axformer prune``.

    Args:
        model: a fine-tuned transformers model of a supported family, with one of the heads that transformers has for it. It may
            be in half precision, or wrapped by ``torch.compile``, ``DataParallel`` or ``DistributedDataParallel``. Or a
            SentenceTransformer.
        tokenizer: the model's tokenizer; None for a SentenceTransformer, which has its own.
        data: the validation data, which decides, with the columns that the model's task reads (see
            :class:`axformer.data.columns.Columns`); None with ``unlabelled`` and a method that looks at no label.
        config: knobs by name, or all of them as :func:`axformer.config.make_config` makes them, which then takes the place of
            goal, preset and ``knobs``.
        goal: what you want, for example ``speedup=2`` or ``within-points=1``, in the place of a preset.
        preset: the preset that the knobs start from.
        test: held-out data, measured before and after, and never used to decide.
        calibrate: data that weights are fitted on, without labels; None for the rows that decide.
        unlabelled: rows without labels from where the model will work. They confirm, but for the part that calibrates where
                ``calibrate`` is not given.
        train: data that the finished model is trained on; None for no training.
        finetune: training settings, for example ``{"epochs": 2}``.
        pooling: how an encoder without a head makes a vector of a text: ``mean``, ``cls``, ``max`` or ``lasttoken``.
        forms: forms of the result, which are written to ``output``.
        output: directory for everything that the command writes; None to write nothing.
        score: with ``method="rank"``, what units leave by: the name of a score, or a function of one's own.
        surroundings: where it happens, and who is told how far it is.
        **knobs: single knobs, for example ``method="rank"``.

    Raises:
        WrongTypeError: an argument is of an unsupported type; the error is an InputError and a TypeError.
        InputError: something does not fit; the message says what is wrong and what to do.
    """
    if forms is not None and output is None:
        raise ConfigError(f"forms={list(forms)} are written to a directory; give output too", "forms")
    if score is not None and not isinstance(config, RunConfig):
        knobs["score"] = "given" if callable(score) else score
    given = {"validation": data, "test": test, "calibrate": calibrate, "unlabelled": unlabelled, "train": train}
    asked = _wish(goal, preset, config, knobs) | {"finetune": finetune, "pooling": pooling, "forms": forms}
    settled, around = settle(given, asked), surroundings or Surroundings()
    rows = {part: _rows_of(part, source, settled.finetune) for part, source in given.items() if source is not None}
    checkpoint = for_run(from_memory(model, tokenizer, pooling), rows)
    inputs = fitted_together(settled, checkpoint, rows)
    check_rebuilt(checkpoint, inputs.validation)
    opened = PruningRun(inputs, settled.knobs, settled.run)
    if callable(score):
        opened.score_by(score)
    opened.look()
    for _ in opened.trials(surroundings=around):
        pass
    opened.repair(around)
    result = Result(opened.plan, opened.trace, opened.model(), None, opened, around, settled.forms)
    if output is not None:
        result.save(output)
    return result


def settle(given: Mapping[str, Data | None], asked: Mapping[str, Any]) -> SettledRun:
    """The run of a model in memory.

    Args:
        given: the data by the fields of a run.
        asked: the other fields.

    Raises:
        ConfigError: they do not fit together.
    """
    paths = {part: str(source) if isinstance(source, str | Path) else IN_MEMORY for part, source in given.items()}
    there = {part: path for part, path in paths.items() if given[part] is not None}
    return read_run({"checkpoint": IN_MEMORY, **there, **asked}).settled()


def _wish(
    goal: str | None, preset: str | None, config: RunConfig | Mapping[str, Any] | None, knobs: Mapping[str, Any]
) -> dict[str, Any]:
    """Goal, preset and knobs as fields of a run."""
    if config is None or isinstance(config, Mapping):
        return {"goal": goal, "preset": preset, "config": {**(config or {}), **knobs}}
    if not isinstance(config, RunConfig):
        raise WrongTypeError(
            f"the config is of type {type(config).__name__}; give knobs by name, or make_config('paper', {{...}})"
        )
    if goal is not None or preset is not None or knobs:
        raise ConfigError("config holds every knob; give goal, preset and single knobs without it", "config")
    return {"preset": Preset.PAPER, "config": changed_knobs(Preset.PAPER, config.model_dump(mode="json"))}


def _rows_of(part: str, data: Data, settings: FinetuneSettings | None) -> Rows:
    """The rows of a field of a run."""
    if isinstance(data, str | Path):
        return read_data(part, DataSource(str(data)), settings)
    return data if isinstance(data, Rows) else rows_of(data)
