"""The plan: what is left of a model, as frozen data. A pass derives plans; masking and surgery apply them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from axformer.errors import PlanError, reason_of
from axformer.plan.elements import (
    Dimensions,
    Element,
    ElementKind,
    Ranges,
    attention,
    ffn,
    head,
    layer_drop,
    neurons,
    parse,
)
from axformer.plan.result_files import PLAN_NAME, read_result

PLAN_FORMAT: Literal["axformer-plan/1"] = "axformer-plan/1"
SECOND_FORMAT: Literal["axformer-plan/2"] = "axformer-plan/2"
"""Format of plans with repaired weights or dropped layers, which readers of the first format cannot apply."""

_NO_ATTENTION: dict[str, Any] = {"attention": False, "heads": (), "hard_attention": None}
_NO_FFN: dict[str, Any] = {"ffn": False, "neurons": ()}
_NOTHING: dict[str, Any] = _NO_ATTENTION | _NO_FFN | {"dropped": True}
_NO_HEADS: dict[str, Any] = {"heads": (), "hard_attention": None}
_NO_NEURONS: dict[str, Any] = {"neurons": ()}


class LayerPlan(BaseModel):
    """What is left of one layer.

    A removed block has no heads, neurons or hard attention. A kept block without heads or neurons differs from it: it still
    adds the bias of its output projection. A dropped layer has no block, and differs from one whose blocks are both removed:
    no LayerNorm is left of it either.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    attention: bool
    """Whether the attention block is kept."""
    heads: tuple[int, ...]
    """Kept heads, ascending."""
    ffn: bool
    """Whether the feed-forward block is kept."""
    neurons: Ranges
    """Kept neurons, as ascending half-open ranges that do not touch."""
    hard_attention: int | None
    """K of the layer's hard attention; None for soft attention."""
    dropped: bool = Field(default=False, exclude_if=lambda dropped: not dropped)
    """Whether the layer is gone with its norms, so that it returns its input."""

    @model_validator(mode="after")
    def _ascending(self) -> "LayerPlan":
        if list(self.heads) != sorted(set(self.heads)) or any(head < 0 for head in self.heads):
            raise ValueError(f"heads {list(self.heads)} are not ascending")
        edges = [edge for bounds in self.neurons for edge in bounds]
        if edges != sorted(set(edges)) or any(edge < 0 for edge in edges):
            raise ValueError(f"neurons {list(self.neurons)} are not ascending ranges")
        if self.hard_attention is not None and self.hard_attention < 1:
            raise ValueError(f"hard_attention {self.hard_attention} keeps no attention")
        if self.dropped and (self.attention or self.heads or self.ffn or self.neurons or self.hard_attention):
            raise ValueError("a dropped layer keeps no block, head, neuron or hard attention")
        return self

    @property
    def neuron_count(self) -> int:
        """Neurons left in the feed-forward block."""
        return sum(stop - start for start, stop in self.neurons)


class Plan(BaseModel):
    """What is left of a model, bottom layer first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: tuple[LayerPlan, ...]

    @classmethod
    def full(cls, dimensions: Dimensions) -> "Plan":
        """The plan that keeps everything."""
        whole = LayerPlan(
            attention=True,
            heads=tuple(range(dimensions.heads)),
            ffn=True,
            neurons=((0, dimensions.intermediate_size),),
            hard_attention=None,
        )
        return cls(layers=(whole,) * dimensions.layers)

    @property
    def dropped(self) -> tuple[int, ...]:
        """The dropped layers, ascending."""
        return tuple(index for index, layer in enumerate(self.layers) if layer.dropped)

    @property
    def remaining(self) -> tuple[int, ...]:
        """The layers that are not dropped, ascending."""
        return tuple(index for index, layer in enumerate(self.layers) if not layer.dropped)

    def of_remaining(self) -> "Plan":
        """The same plan for the model from which the dropped layers were taken out."""
        return Plan(layers=tuple(self.layers[index] for index in self.remaining))

    def only_drops(self, dimensions: Dimensions) -> bool:
        """Whether the plan drops layers and does nothing else."""
        return bool(self.dropped) and self == Plan.full(dimensions).dropping(self.dropped)

    def dropping(self, layers: Iterable[int]) -> "Plan":
        """This plan with more layers dropped."""
        plan = self
        for index in layers:
            plan = plan.apply(layer_drop(index), top_k=None)
        return plan

    def apply(self, element: Element, *, top_k: int | None, keeps_bias: bool = False) -> "Plan":
        """This plan with one element removed, or with hard attention (``top_k``) in one layer.

        Args:
            top_k: attention probabilities that hard attention keeps for each query.
            keeps_bias: whether a removed block still adds the bias of its output projection, as where that is fitted.
        """
        layers = list(self.layers)
        layers[element.layer] = _changed(layers[element.layer], element, top_k, keeps_bias)
        return self.model_copy(update={"layers": tuple(layers)})

    def holds(self, element: Element, *, keeps_bias: bool = False) -> bool:
        """Whether removing this element would remove anything."""
        old = self.layers[element.layer]
        return _changed(old, element, 1, keeps_bias) != old

    def check_fits(self, dimensions: Dimensions) -> None:
        """Check that the plan fits a model with these dimensions.

        Raises:
            PlanError: the plan has other layers, heads or neurons that the model lacks, or drops all layers.
        """
        if len(self.layers) != dimensions.layers:
            raise PlanError(f"the plan has {len(self.layers)} layers, the model has {dimensions.layers}")
        if len(self.dropped) == dimensions.layers:
            raise PlanError(f"the plan drops all {dimensions.layers} layers; at least one must stay")
        for index, layer in enumerate(self.layers):
            if layer.heads and layer.heads[-1] >= dimensions.heads:
                raise PlanError(
                    f"the plan keeps head {layer.heads[-1]} of layer {index}, the model has {dimensions.heads}"
                )
            if layer.neurons and layer.neurons[-1][1] > dimensions.intermediate_size:
                stop, size = layer.neurons[-1][1], dimensions.intermediate_size
                raise PlanError(f"the plan keeps neurons up to {stop} in layer {index}, the model has {size}")


def _changed(old: LayerPlan, element: Element, top_k: int | None, keeps_bias: bool) -> LayerPlan:
    """A layer with one element removed, or with hard attention."""
    if old.dropped:
        return old
    no_attention, no_ffn = (_NO_HEADS, _NO_NEURONS) if keeps_bias else (_NO_ATTENTION, _NO_FFN)
    match element.kind:
        case ElementKind.LAYER:
            change: dict[str, Any] = no_attention | no_ffn
        case ElementKind.LAYER_DROP:
            change = _NOTHING
        case ElementKind.ATTENTION:
            change = no_attention
        case ElementKind.FFN:
            change = no_ffn
        case ElementKind.HEAD:
            change = {"heads": tuple(head for head in old.heads if head != element.start)}
        case ElementKind.NEURONS:
            change = {"neurons": without(old.neurons, element.ranges)}
        case ElementKind.HARD_ATTENTION:
            change = {"hard_attention": top_k}
    return old.model_copy(update=change)


class PlanSource(BaseModel):
    """The weights that a plan belongs to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model_type: str
    sha256: str


class PlanFile(BaseModel):
    """The content of ``plan.json``: a plan with its source and the knobs that made it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["axformer-plan/1", "axformer-plan/2"] = PLAN_FORMAT
    source: PlanSource
    config: dict[str, Any]
    layers: tuple[LayerPlan, ...]
    repair: Literal["refit"] | None = None
    """The repair of the weights that stay: ``refit`` fitted the output projections (``repair.safetensors``)."""
    trained: bool = Field(default=False, exclude_if=lambda trained: not trained)
    """Whether the model was trained, so that its weights follow neither from the checkpoint nor from this file."""

    @property
    def plan(self) -> Plan:
        """The plan alone."""
        return Plan(layers=self.layers)


def said_repaired(file: PlanFile, *, is_fitted: bool, is_trained: bool = False) -> PlanFile:
    """The plan file of a model whose weights were fitted or trained, or of one where they were not."""
    is_second = is_fitted or is_trained or bool(file.plan.dropped)
    repaired = {"repair": "refit" if is_fitted else None, "trained": is_trained}
    return file.model_copy(update={"format": SECOND_FORMAT if is_second else PLAN_FORMAT, **repaired})


def read_plan_file(path: Path) -> PlanFile:
    """Read a ``plan.json``, or that of a result by its directory.

    Raises:
        PlanError: the file is missing or not a plan.
    """
    text = read_result(path, PLAN_NAME)
    try:
        return parse_plan_file(text)
    except PlanError as error:
        raise PlanError(f"'{path}': {error}") from None


def parse_plan_file(text: str) -> PlanFile:
    """Read the text of a ``plan.json``.

    Raises:
        PlanError: the text is not a plan.
    """
    try:
        return PlanFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PlanError(f"this is not a plan of format {PLAN_FORMAT}: {field}: {reason_of(first)}") from None


def kept_neurons(plan: LayerPlan) -> Sequence[int]:
    """The neurons that a layer keeps, one by one."""
    return [neuron for start, stop in plan.neurons for neuron in range(start, stop)]


def without(ranges: Ranges, others: Ranges) -> Ranges:
    """Ascending half-open ranges with everything in others, ascending too, taken out."""
    pieces: list[tuple[int, int]] = []
    first = 0
    for low, high in ranges:
        while first < len(others) and others[first][1] <= low:
            first += 1
        place = first
        while place < len(others) and others[place][0] < high:
            pieces.append((low, others[place][0]))
            low, place = max(low, others[place][1]), place + 1
        pieces.append((low, high))
    return tuple((low, high) for low, high in pieces if low < high)


def missing_from(plan: Plan, dimensions: Dimensions) -> list[Element]:
    """The layers, blocks, heads and runs of neurons that a plan does not keep, bottom layer first."""
    missing: list[Element] = []
    for index, layer in enumerate(plan.layers):
        if layer.dropped:
            missing.append(layer_drop(index))
            continue
        if layer.attention:
            missing += [head(index, number) for number in range(dimensions.heads) if number not in layer.heads]
        else:
            missing.append(attention(index))
        if layer.ffn:
            gaps = without(((0, dimensions.intermediate_size),), layer.neurons)
            missing += [neurons(index, start, stop) for start, stop in gaps]
        else:
            missing.append(ffn(index))
    return missing


def removed_elements(accepted: Iterable[str]) -> list[str]:
    """Ids of accepted elements without those that a larger accepted element contains."""
    ids = list(accepted)
    return [id for id in ids if not any(id != other and _contains(other, id) for other in ids)]


def _contains(larger: str, id: str) -> bool:
    """Whether an element, by its id, contains another one. A dropped layer contains whatever was removed of it before."""
    whole = parse(larger) if larger.endswith(".drop") else None
    if whole is not None:
        return parse(id).layer == whole.layer
    return id.startswith(f"{larger}.") and not id.endswith(".drop")
