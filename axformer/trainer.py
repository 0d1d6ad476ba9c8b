"""Pruning at the end of a training with transformers' Trainer."""

from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.utils import logging

from axformer.pruning import Data, prune, settle
from axformer.result import Result
from axformer.wire.run import DATA

DIRECTORY = "pruned"
"""Of the result, in the Trainer's output directory."""


_BESIDE = ("score", "surroundings")
"""Arguments of :func:`axformer.prune` that say nothing of a run."""


class PruneCallback(TrainerCallback):
    """Prunes the model that a training ends with, and writes the result beside its checkpoints.

    >>> callback = PruneCallback("dev.jsonl", goal="within-points=1", test="test.jsonl")
    >>> Trainer(model, arguments, train_dataset=rows, processing_class=tokenizer, callbacks=[callback]).train()
    >>> callback.result.advice

    The figures of the advised form stand in the Trainer's ``state.log_history`` as ``pruned/...``.
    """

    def __init__(
        self, data: Data | None = None, *, tokenizer: Any = None, output: str | Path | None = None, **wishes: Any
    ):
        """
        Args:
            data: the validation data, as of :func:`axformer.prune`.
            tokenizer: None for the Trainer's ``processing_class``.
            output: the directory of the result; None for ``pruned`` in the Trainer's ``output_dir``.
            wishes: other arguments of :func:`axformer.prune`, such as ``goal`` and ``test``.

        Raises:
            ConfigError: they do not fit together, which is said before the training.
        """
        if "config" not in wishes:
            parts = {part: wishes.get(part) for part in DATA if part != "validation"} | {"validation": data}
            fields: dict[str, Any] = {
                name: wishes[name] for name in ("goal", "preset", "finetune", "forms") if name in wishes
            }
            knobs = {name: value for name, value in wishes.items() if name not in {*parts, *fields, *_BESIDE}}
            settle(parts, {**fields, "config": knobs})
        self._data, self._tokenizer, self._output, self._wishes = data, tokenizer, output, wishes
        self.result: Result | None = None
        """What came of it, once the training has ended."""

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **of_trainer: Any
    ) -> None:
        """Prune, on the first process alone.

        Raises:
            InputError: as of :func:`axformer.prune`.
        """
        del control
        if not state.is_world_process_zero:
            return
        tokenizer = self._tokenizer or of_trainer.get("processing_class")
        output = Path(args.output_dir or ".", DIRECTORY) if self._output is None else Path(self._output)
        self.result = prune(of_trainer["model"], tokenizer, self._data, output=output, **self._wishes)
        log: list[dict[str, Any]] = state.log_history
        log.append({"step": state.global_step, **_figures(self.result)})
        logging.get_logger(__name__).warning("%s (%s)", self.result.advice, output)


def _figures(result: Result) -> dict[str, float | str]:
    """The advice, and the figures of the model in PyTorch before and after."""
    assert result.report is not None, "it was written"
    base, pruned = result.report["base"], result.report["pruned"]
    data = "test" if pruned.get("test") else "validation"
    figures: dict[str, float | str] = {"pruned/advice": result.advice or ""}
    for name, value in (pruned[data] or {}).items():
        figures |= {f"pruned/{name}": value, f"pruned/{name}_before": base[data][name]}
    return figures | {"pruned/parameters": pruned["parameters"], "pruned/parameters_before": base["parameters"]}
