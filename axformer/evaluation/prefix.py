"""The evaluator that runs only the part of the forward pass that a change can affect.

An element does not affect anything before it in the forward pass (ALGORITHM, "Exactness"). So the inputs of blocks are cached
for the current plan, and a trial starts at the first block that it changes. An accepted change invalidates the inputs above it;
they are computed again only if a later trial starts there, which never happens from top to bottom.

Losses are a function of the current plan and the plan on trial alone, bit for bit: cached values equal those computed afresh.
So a resumed pass sees the same numbers as one that was never stopped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.base import Architecture
from axformer.data.batches import Batch, Samples
from axformer.evaluation.activations import Activations, input_bytes
from axformer.evaluation.base import AHEAD_ON_GPU, Evaluator, Fitting, Part, arriving, by_sample
from axformer.evaluation.changes import Route, Units, first_changed_block, longest_untouched, route_of, units_removed
from axformer.evaluation.cut_layers import CutLayers
from axformer.evaluation.multiply import multiply_fast
from axformer.evaluation.walk import Walk, added, has_shares
from axformer.model.tail import ReadPosition, mixes, read_positions, tail_start
from axformer.plan.blocks import Block, all_blocks
from axformer.plan.plan import LayerPlan, Plan
from axformer.pulse import beat
from axformer.tasks.base import Losses


@dataclass(frozen=True)
class Techniques:
    """Switches of the techniques. None of them changes a loss by more than rounding (ALGORITHM, "Exactness")."""

    prefixes: bool = True
    """Cache the inputs of blocks, and run only the blocks from the first change on."""
    shares: bool = True
    """Subtract the share of a head or a neuron group from its block's output, instead of running the block without it."""
    tail: bool = True
    """After the last attention, compute only the position that the head reads."""
    absorbed: bool = True
    """If the head reads one position, compute no keys and values for the last attention, provided that it is plain."""
    packed: bool = True
    """On a CPU, pack weights for the kernels once, and fuse activation functions into the products."""
    untouched: bool = True
    """Skip samples that hard attention cannot change, because they have at most K tokens."""


ALL = Techniques()


class PrefixEvaluator(Evaluator):
    """Caches inputs of blocks within a budget; see :class:`axformer.evaluation.base.Evaluator`."""

    def __init__(
        self,
        model: Any,
        architecture: Architecture,
        task: Losses,
        samples: Samples,
        plan: Plan,
        *,
        budget: int,
        techniques: Techniques = ALL,
        fitting: Fitting | None = None,
    ) -> None:
        """Begin with a current plan, and cache at most ``budget`` bytes of activations on the device of the samples.

        Raises:
            ConfigError: the disk has no space for required activations that do not fit into the budget.
        """
        self._model = model
        self._architecture = architecture
        self._task = task
        self.samples = samples
        # Shares assume that the other weights of the block stay the same, but a fit changes all of them.
        self._techniques = techniques if fitting is None else replace(techniques, shares=False)
        self._fitting = fitting
        self._layers = CutLayers(model, architecture, self._convert)
        self._rows = [batch.rows.cpu() for batch in samples.batches]
        self._places = torch.cat(self._rows)
        self._positions = [self._read_position(batch) for batch in samples.batches]
        self.activations = Activations(
            [input_bytes(batch, model.config.hidden_size) for batch in samples.batches], budget
        )
        self._order = list(range(len(samples.batches)))
        self.plan = plan
        """The current plan."""
        self._losses: Tensor | None = None
        self._last: tuple[Plan, Tensor] | None = None

    def _convert(self, index: int, layer: nn.Module, plan: LayerPlan) -> None:
        if self._fitting is not None:
            self._fitting.fit(index, layer, plan)
        if self._techniques.packed:
            multiply_fast(layer, plan, architecture=self._architecture)

    def parts(self, plan: Plan) -> Iterator[Part]:
        if self._fitting is not None:
            self._fitting.prepare(plan)
        return by_sample(self.rows(plan), self.samples)

    def rows(self, plan: Plan) -> Iterator[Part]:
        """Yield the losses of model rows, batch by batch. A complete result is remembered until a plan is accepted."""
        if plan == self.plan and self._losses is not None:
            yield Part(self._places, self._losses[self._places])
            return
        losses = torch.empty(len(self.samples.sample_of_row))
        missing = len(self._places)
        for part in self.rows_in(plan, self._layers, first_changed_block(self.plan, plan)):
            losses[part.places] = part.losses
            missing -= len(part.places)
            if missing == 0:  # before the last part is yielded, since the caller may then stop iterating
                self._remember(plan, losses)
            yield part

    def _remember(self, plan: Plan, losses: Tensor) -> None:
        self._last = (plan, losses)
        if plan == self.plan:
            self._losses = losses

    def rows_in(self, plan: Plan, above: CutLayers, first: int) -> Iterator[Part]:
        """Yield the losses of model rows with other layers from a block on. Rows that cannot change are not computed again.

        The result is not remembered.

        Args:
            above: returns the layers for the blocks from ``first`` on.
            first: a block below which the plan changes nothing.
        """
        reach = longest_untouched(self.plan, plan) if self._techniques.untouched else 0
        untouched = self.losses_now() if reach else None
        trial = self._trial(plan, above, first)

        def computed() -> Iterator[tuple[Tensor, Tensor]]:
            for index in self._order:
                beat()
                rows = self._rows[index]
                if untouched is not None and self.samples.batches[index].tokens <= reach:
                    yield rows, untouched[rows]
                else:
                    yield rows, self._run(trial, index)

        yield from arriving(computed(), AHEAD_ON_GPU if self._model.device.type == "cuda" else 0)

    def losses_now(self) -> Tensor:
        """The losses of all model rows under the current plan, shape (model rows,)."""
        for _ in self.rows(self.plan):
            pass
        assert self._losses is not None, "rows that were seen to the end are remembered"
        return self._losses

    def accept(self, plan: Plan) -> None:
        self.activations.forget_above(min(first_changed_block(self.plan, plan), self._tail(plan)))
        self.plan = plan
        self._losses = self._last[1] if self._last is not None and self._last[0] == plan else None

    def see_first(self, samples: Tensor | None) -> None:
        self._order = list(range(len(self.samples.batches)))
        if samples is not None:
            wanted = samples[self.samples.sample_of_row]
            batches = self.samples.batches
            self._order.sort(key=lambda index: -wanted[self._rows[index]].sum().item() / batches[index].size)

    def _trial(self, plan: Plan, above: CutLayers, first: int) -> "_Trial":
        units, tails = self._units_removed(plan), (self._tail(self.plan), self._tail(plan))
        route = route_of(self.plan, plan, first, tails, units)
        exact, rest = self._layers.get(route.runs), above.get(route.runs)
        layers = [(exact if block.number < first else rest)[block.layer] for block in all_blocks(len(exact))]
        if units is None:
            return _Trial(route, layers)
        layers[units.block.number] = exact[units.block.layer]
        return _Trial(route, layers, self._layers.alone(units))

    def _units_removed(self, plan: Plan) -> Units | None:
        """The units whose shares a trial subtracts from the output of a block; None if it must run the block again."""
        if not self._techniques.shares or self._tail(plan) != self._tail(self.plan):
            return None
        units = units_removed(self.plan, plan)
        if units is None:
            return None
        layer = self._architecture.layers(self._model)[units.block.layer]
        return units if has_shares(self._architecture.layout(units.block), layer) else None

    @torch.inference_mode()
    def _run(self, trial: "_Trial", index: int) -> Tensor:
        """The losses of the batch with this index, on its device."""
        batch = self.samples.batches[index]
        start, entry = self.activations.nearest(index, trial.route.known) or (0, None)

        def keep(block: int, hidden: Tensor) -> None:
            if self._techniques.prefixes and block <= trial.route.known:
                self.activations.offer(index, block, hidden, trial.route.known)

        walk = Walk(
            self._architecture,
            trial.route.runs,
            trial.layers,
            start,
            entry,
            trial.route.tail,
            self._positions[index],
            batch.tokens,
            keep,
            {} if trial.alone is None else {trial.route.first: partial(self._without, index, trial)},
            self._techniques.absorbed,
        )
        with walk.on(self._model):
            output = self._model(**batch.inputs)
        return self._task.losses(output, batch)

    def _without(
        self, index: int, trial: "_Trial", layer: nn.Module, hidden: Tensor, arguments: Mapping[str, Any]
    ) -> Tensor:
        """Run a block without the share of some of its heads or neurons."""
        assert trial.alone is not None
        route = trial.route
        layout = self._architecture.layout(Block.at(route.first))
        at_tail = route.first == route.tail and mixes(route.runs, Block.at(route.first))
        position = self._positions[index] if at_tail else None
        whole = self.activations.added(index, route.first)
        if whole is None:
            whole = added(layout, layer, hidden, arguments, position, absorbed=self._techniques.absorbed)
            self.activations.keep_added(index, route.first, whole, route.known)
        rest = whole - added(layout, trial.alone, hidden, arguments, position, absorbed=self._techniques.absorbed)
        return layout.skip(layer, (hidden if position is None else position.narrow(hidden)) + rest)

    def _tail(self, plan: Plan) -> int:
        """The first block of the tail; the number of blocks if there is no tail."""
        if not self._techniques.tail or not self._task.pooled:
            return len(all_blocks(len(plan.layers)))
        earliest = self._architecture.mixes_tokens_after(self._model.config)
        return tail_start(plan, earliest, reads_one=self._model._supports_attention_backend)

    def _read_position(self, batch: Batch) -> ReadPosition | None:
        return read_positions(self._model, self._architecture, batch) if self._task.pooled else None


@dataclass(frozen=True)
class _Trial:
    """The route of a plan on trial, and the layers to run."""

    route: Route
    layers: Sequence[nn.Module]
    """The layer of every block."""
    alone: nn.Module | None = None
    """The layer with only those heads or neurons whose share is subtracted from the first block."""
