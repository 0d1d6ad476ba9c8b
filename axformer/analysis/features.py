"""How few dimensions of how few layers are enough for a linear classifier (Dalvi et al., 2020, section 7).

1. *LayerSelector*: probes on the embeddings and the lowest layers together, by number of layers; the lowest number with 99 % of
   the metric of all layers is taken.
2. Of these dimensions one of each cluster stays (threshold 0.3). Where they are too many to be clustered together, layers are
   clustered in groups of neighbours; the paper finds 95 % of the clusters within two layers.
3. *Feature selection* (section 6.2): dimensions are ranked by the share of weight that the probe of each class gives them, and
   the fewest are taken with which a probe, fitted anew, has at least 99 % of the metric after step 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from axformer.analysis.clusters import WINDOW_THRESHOLD, clusters_at, correlations, one_of_each, tree_of
from axformer.analysis.probing import MeasuredProbe, Probing, dimensions_of
from axformer.analysis.study import Study
from axformer.wire.analysis import Chosen
from axformer.wire.steps import Counter, StepName

_SHARES = (*range(1, 6), *(10 * percent for percent in (*range(1, 11), *range(15, 51, 5), *range(60, 91, 10))))
"""The numbers of dimensions that are tried, in thousandths of all dimensions of the model."""
MASSES = 100
"""Steps in which the share of weight grows that ranks dimensions."""


@dataclass(frozen=True)
class Selection:
    """The dimensions that are enough."""

    oracle: Chosen
    by_depth: tuple[float, ...]
    selected: Chosen
    clustered: Chosen
    minimal: Chosen
    by_count: tuple[tuple[int, float], ...]
    dimensions: tuple[int, ...]
    """The kept ones, the best first, counted state by state."""


def select(study: Study) -> Selection:
    """Select the dimensions of a study's model.

    Args:
        study: with training rows and labels.
    """
    states, probing = study.data.states, Probing(study)
    counter = Counter(StepName.PROBING, states.layers + 4, study.surroundings.on_step)
    counter.begin("by number of layers")
    depths = []
    for depth in range(states.layers + 1):
        depths.append(probing.of_layers(range(depth + 1)))
        counter.advance(detail="by number of layers")
    oracle = depths[-1]
    near = (depth for depth, found in enumerate(depths) if probing.is_near(found.metric, oracle.metric))
    depth = next(near, states.layers)
    counter.begin("clusters")
    kept = _one_of_each_cluster(study, depth)
    clustered = probing.on(kept)
    counter.advance(detail="ranked dimensions")
    order = [kept[place] for place in ranked(clustered.probe.sizes)]
    tried = _fewest(probing, order, states.dimensions, clustered.metric)
    counter.advance(2)
    count, minimal = tried[-1]
    return Selection(
        oracle=_chosen(states.layers, states.dimensions, oracle),
        by_depth=tuple(found.metric for found in depths),
        selected=_chosen(depth, (depth + 1) * states.hidden, depths[depth]),
        clustered=_chosen(depth, len(kept), clustered),
        minimal=_chosen(depth, count, minimal),
        by_count=tuple((size, found.metric) for size, found in tried),
        dimensions=tuple(order[:count]),
    )


def _chosen(layers: int, dimensions: int, found: MeasuredProbe) -> Chosen:
    return Chosen(layers=layers, dimensions=dimensions, metric=found.metric, seconds=found.seconds)


def _one_of_each_cluster(study: Study, depth: int) -> list[int]:
    """One dimension of each cluster of the embeddings and the lowest layers."""
    assert study.train is not None, "dimensions are clustered on training rows"
    states, draw = study.train.states, np.random.default_rng(study.seed)
    together = max(1, study.bounds.dimensions // states.hidden)
    kept: list[int] = []
    for start in range(0, depth + 1, together):
        group = np.array(dimensions_of(range(start, min(start + together, depth + 1)), states.hidden))
        tree = tree_of(correlations(states, group.tolist(), study.surroundings.check_cancelled))
        kept += group[one_of_each(clusters_at(tree, WINDOW_THRESHOLD), draw)].tolist()
    return kept


def ranked(sizes: np.ndarray) -> list[int]:
    """Dimensions by how soon some class needs them, the soonest first (Linguistic Correlation Analysis, Dalvi et al., 2019).

    At each share of its weight, a class needs the fewest dimensions that have it together. Of dimensions that come in together
    those with the larger absolute weight are first, which the paper leaves open.

    Args:
        sizes: absolute weights of a probe, shape (classes, dimensions).
    """
    steps = np.full(sizes.shape[1], MASSES + 1)
    for weights in sizes:
        order = np.argsort(-weights, kind="stable")
        total = weights.sum()
        before = np.concatenate([[0.0], np.cumsum(weights[order])[:-1]]) / (total or 1.0)
        entered = np.minimum(np.floor(before * MASSES) + 1, MASSES).astype(int)
        steps[order] = np.minimum(steps[order], entered)
    strongest = sizes.max(axis=0)
    return sorted(range(len(steps)), key=lambda place: (steps[place], -strongest[place], place))


def _fewest(probing: Probing, order: Sequence[int], whole: int, baseline: float) -> list[tuple[int, MeasuredProbe]]:
    """Numbers of best dimensions with their probes, up to the first that is enough."""
    sizes = sorted({max(1, round(share * whole / 1000)) for share in _SHARES} | {len(order)})
    tried: list[tuple[int, MeasuredProbe]] = []
    for size in (size for size in sizes if size <= len(order)):
        tried.append((size, probing.on(order[:size])))
        if probing.is_near(tried[-1][1].metric, baseline):
            break
    return tried
