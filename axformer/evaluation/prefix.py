"""The evaluator that runs only what a change can reach.

What comes before an element in the forward pass is not changed by it (ALGORITHM, "Exactness"). So the activations at each
block's input are kept for the model as it is now, and a trial starts at the first block that it changes. What an accepted
change makes stale lies above it and is computed again only if a later trial starts there; from top to bottom none does.
The last FFN block runs only where the head reads its output.

The model's own ``forward`` runs for every trial; only its layers are called differently. So what stands around the layers,
any embedding and any head, needs no word here.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture
from axformer.data.batches import Batch, Samples
from axformer.evaluation.base import Evaluator, Part, by_sample, together
from axformer.evaluation.cut_layers import CutLayers
from axformer.plan import LayerPlan, Plan
from axformer.tasks.base import Task


class PrefixEvaluator(Evaluator):
    """Keeps every block's input; see :class:`axformer.evaluation.base.Evaluator`.

    Memory: two float32 tensors of shape (tokens, hidden) a layer and model row, on the device of the samples.
    """

    precision = "float32"

    def __init__(self, model: Any, architecture: Architecture, task: Task, samples: Samples, plan: Plan) -> None:
        self._model = model
        self._architecture = architecture
        self._task = task
        self._samples = samples
        self._prefixes = [_Prefix(batch) for batch in samples.batches]
        self._layers = CutLayers(model, architecture)
        self._plan = plan
        self._losses: Tensor | None = None
        self._last: tuple[Plan, Tensor] | None = None

    @property
    def total(self) -> int:
        return len(self._samples)

    def parts(self, plan: Plan) -> Iterator[Part]:
        return by_sample(self._rows(plan), self._samples)

    def accept(self, plan: Plan) -> None:
        first = first_changed_block(self._plan, plan)
        for prefix in self._prefixes:
            del prefix.inputs[first + 1 :]
        self._plan = plan
        self._losses = self._last[1] if self._last is not None and self._last[0] == plan else None

    def _rows(self, plan: Plan) -> Iterator[Part]:
        """The losses of all model rows, batch by batch; those that ``plan`` cannot change are not computed again."""
        reach = longest_untouched(self._plan, plan)
        untouched = self._losses_now() if reach else None
        losses = torch.empty(len(self._samples.sample_of_row))
        for prefix in self._prefixes:
            rows = prefix.batch.rows.cpu()
            if untouched is not None and prefix.batch.tokens <= reach:
                losses[rows] = untouched[rows]
            else:
                losses[rows] = self._run(plan, prefix)
            yield Part(rows, losses[rows])
        self._last = (plan, losses)

    def _losses_now(self) -> Tensor:
        """The losses of all model rows under the plan as it is now."""
        if self._losses is None:
            self._losses = together(self._rows(self._plan))
        return self._losses

    @torch.inference_mode()
    def _run(self, plan: Plan, prefix: "_Prefix") -> Tensor:
        first = first_changed_block(self._plan, plan)
        layers = self._layers.get(plan)
        position = self._read_position(prefix.batch)
        with self._walking(_Walk(self._architecture, layers, plan, prefix.inputs, first, position)):
            output = self._model(**prefix.batch.inputs)
        return self._task.losses(output, prefix.batch).cpu()

    @contextmanager
    def _walking(self, walk: "_Walk") -> Iterator[None]:
        """Let the model go through its layers in this way inside the ``with`` block."""
        layers = self._architecture.layers(self._model)
        try:
            for index, layer in enumerate(layers):
                names = list(inspect.signature(layer.forward).parameters)
                layer.forward = partial(walk, index, names)
            yield
        finally:
            for layer in layers:
                layer.__dict__.pop("forward", None)

    def _read_position(self, batch: Batch) -> Tensor | None:
        if not self._task.pooled:
            return None
        ids = batch.inputs["input_ids"]
        return self._architecture.read_position(self._model.config, ids.flatten(end_dim=-2))


class _Prefix:
    """What is remembered of one batch: the inputs of its first blocks, bottom first."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.inputs: list[Tensor] = []


class _Walk:
    """One forward pass through the layers, from the highest block up to ``first`` whose input is known.

    Inputs of blocks up to ``first`` are remembered, for they stay as they are.
    """

    def __init__(
        self,
        architecture: Architecture,
        layers: Sequence[nn.Module],
        plan: Plan,
        inputs: list[Tensor],
        first: int,
        read_position: Tensor | None,
    ) -> None:
        self._architecture = architecture
        self._layers = layers
        self._plan = plan
        self._inputs = inputs
        self._first = first
        self._start = min(first, len(inputs) - 1)
        self._read_position = read_position

    def __call__(self, index: int, names: list[str], hidden: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Stands in for the ``forward`` of layer number ``index``; ``names`` are those of its parameters."""
        arguments = dict(zip(names[1:], args, strict=False)) | kwargs
        for block in (2 * index, 2 * index + 1):
            if block == self._start:
                hidden = self._inputs[block]
            elif len(self._inputs) == block <= self._first:
                self._inputs.append(hidden)
            if block >= self._start:
                hidden = self._run_block(block, self._layers[index], hidden, arguments)
        return self._architecture.returned(hidden)

    def _run_block(self, block: int, layer: nn.Module, hidden: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        plan = self._plan.layers[block // 2]
        is_attention = block % 2 == 0
        layout = self._architecture.attention if is_attention else self._architecture.ffn
        is_kept = plan.attention if is_attention else plan.ffn

        def run(hidden: Tensor) -> Tensor:
            return layout.run(layer, hidden, arguments) if is_kept else layout.skip(layer, hidden)

        if block < 2 * len(self._plan.layers) - 1 or self._read_position is None:
            return run(hidden)
        rows = torch.arange(len(self._read_position), device=hidden.device)
        by_row = hidden.movedim(self._architecture.token_axis, 1)
        output = torch.zeros_like(by_row)  # nobody reads the rest
        output[rows, self._read_position] = run(by_row[rows, self._read_position][:, None])[:, 0]
        return output.movedim(1, self._architecture.token_axis)


def first_changed_block(now: Plan, then: Plan) -> int:
    """The lowest block that differs, where layer ``l`` has attention block ``2l`` and FFN block ``2l + 1``.

    The number of blocks where nothing differs.
    """
    for index, (old, new) in enumerate(zip(now.layers, then.layers, strict=True)):
        if _attention_of(old) != _attention_of(new):
            return 2 * index
        if old != new:
            return 2 * index + 1
    return 2 * len(now.layers)


def longest_untouched(now: Plan, then: Plan) -> int:
    """The length in tokens up to which no sample can change: K where all that differs is new hard attention, else 0."""
    reach = []
    for old, new in zip(now.layers, then.layers, strict=True):
        if old == new:
            continue
        if old.hard_attention is not None or old != new.model_copy(update={"hard_attention": None}):
            return 0
        assert new.hard_attention is not None
        reach.append(new.hard_attention)
    return min(reach, default=0)


def _attention_of(layer: LayerPlan) -> tuple[object, ...]:
    return layer.attention, layer.heads, layer.hard_attention
