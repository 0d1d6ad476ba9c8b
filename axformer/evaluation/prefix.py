"""The evaluator that runs only what a change can reach.

What comes before an element in the forward pass is not changed by it (ALGORITHM, "Exactness"). So the activations at each
block's input are kept for the model as it is now, and a trial starts at the first block that it changes. What an accepted
change makes stale lies above it and is computed again only if a later trial starts there; from top to bottom none does.
The last FFN block runs only where the head reads its output.
"""

from typing import Any

import torch
from torch import Tensor
from transformers.modeling_outputs import SequenceClassifierOutput

from axformer.architectures.base import Architecture
from axformer.batches import Batch, Samples
from axformer.masking import masked
from axformer.plan import LayerPlan, Plan
from axformer.tasks.base import Task


class PrefixEvaluator:
    """Keeps every block's input; see :class:`axformer.evaluation.base.Evaluator`.

    Memory: two float32 tensors of shape (tokens, hidden) a layer and sample, on the device of the samples.
    """

    def __init__(self, model: Any, architecture: Architecture, task: Task, samples: Samples, plan: Plan) -> None:
        self._model = model
        self._architecture = architecture
        self._layers = architecture.layers(model)
        self._task = task
        self._samples = samples
        self._prefixes = [_Prefix(batch) for batch in samples.batches]
        self._plan = plan
        self._losses: Tensor | None = None
        self._last: tuple[Plan, Tensor] | None = None

    @torch.inference_mode()
    def losses(self, plan: Plan) -> Tensor:
        if self._losses is None:
            self._losses = self._run(self._plan, torch.empty(len(self._samples.sample_of_row)))
        losses = self._run(plan, self._losses.clone()) if plan != self._plan else self._losses
        self._last = (plan, losses)
        return self._samples.per_sample(losses)

    def accept(self, plan: Plan) -> None:
        first = first_changed_block(self._plan, plan)
        for prefix in self._prefixes:
            del prefix.inputs[first + 1 :]
        self._plan = plan
        self._losses = self._last[1] if self._last is not None and self._last[0] == plan else None

    def _run(self, plan: Plan, losses: Tensor) -> Tensor:
        """Fill in the losses of all model rows that ``plan`` can change against the plan as it is now."""
        first = first_changed_block(self._plan, plan)
        reach = longest_untouched(self._plan, plan)
        with masked(self._model, self._architecture, plan):
            for prefix in self._prefixes:
                if prefix.batch.tokens > reach:
                    output = SequenceClassifierOutput(logits=self._logits(prefix, first, plan))
                    losses[prefix.batch.rows.cpu()] = self._task.losses(output, prefix.batch).cpu()
        return losses

    def _logits(self, prefix: "_Prefix", first: int, plan: Plan) -> Tensor:
        """The output for one batch; the inputs of blocks up to ``first`` are remembered, for they stay as they are."""
        if not prefix.inputs:
            hidden, prefix.mask = self._architecture.embed(self._model, prefix.batch.inputs)
            prefix.inputs.append(hidden)
        while len(prefix.inputs) <= first:
            prefix.inputs.append(self._run_block(len(prefix.inputs) - 1, prefix.inputs[-1], prefix.mask, plan))
        hidden = prefix.inputs[first]
        for block in range(first, 2 * len(self._layers)):
            hidden = self._run_block(block, hidden, prefix.mask, plan)
        return self._architecture.head(self._model, hidden)

    def _run_block(self, block: int, hidden: Tensor, mask: Tensor | None, plan: Plan) -> Tensor:
        layer, layer_plan = self._layers[block // 2], plan.layers[block // 2]
        if block % 2 == 0:
            if layer_plan.attention:
                return self._architecture.layout.run_attention(layer, hidden, mask)
            return self._architecture.layout.skip_attention(layer, hidden)
        if block == 2 * len(self._layers) - 1:
            hidden = self._architecture.read_by_head(hidden)
        if layer_plan.ffn:
            return self._architecture.layout.run_ffn(layer, hidden)
        return self._architecture.layout.skip_ffn(layer, hidden)


class _Prefix:
    """What is remembered of one batch: its mask and the inputs of its first blocks, bottom first."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.mask: Tensor | None = None
        self.inputs: list[Tensor] = []


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
