"""Random plans and knobs for property tests."""

from hypothesis import strategies as st

from axformer.plan.elements import Dimensions
from axformer.plan.plan import LayerPlan, Plan


def plans(dimensions: Dimensions) -> st.SearchStrategy[Plan]:
    """Any plan of a model, those that empty or remove blocks or drop layers included."""
    layers = st.lists(layer_plans(dimensions), min_size=dimensions.layers, max_size=dimensions.layers)
    dropped = st.sets(st.integers(0, dimensions.layers - 1), max_size=dimensions.layers - 1)
    return st.builds(lambda some, gone: Plan(layers=tuple(some)).dropping(gone), layers, st.just(set()) | dropped)


@st.composite
def layer_plans(draw: st.DrawFn, dimensions: Dimensions) -> LayerPlan:
    """Any plan of a layer."""
    attention, ffn = draw(st.booleans()), draw(st.booleans())
    heads = draw(st.sets(st.integers(0, dimensions.heads - 1))) if attention else set()
    cuts = sorted(draw(st.sets(st.integers(0, dimensions.intermediate_size), max_size=6))) if ffn else []
    return LayerPlan(
        attention=attention,
        heads=tuple(sorted(heads)),
        ffn=ffn,
        neurons=tuple(zip(cuts[::2], cuts[1::2], strict=False)),
        hard_attention=draw(st.none() | st.integers(1, 12)) if attention else None,
    )
