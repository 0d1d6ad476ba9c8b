"""Clusters of dimensions that say the same (Dalvi et al., 2020, section 5.2).

The distance of two dimensions is one minus the absolute value of Pearson's correlation over all positions. SciPy clusters by
average linkage and cuts at a threshold, so that members of a cluster are on average at most that far apart.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from axformer.analysis.representations import CHUNK, Representations
from axformer.wire.steps import never

THRESHOLDS = tuple(step / 10 for step in range(10))
"""The paper's."""
WINDOW_THRESHOLD = 0.3
"""At which the paper looks at the layers of a cluster, and merges dimensions for features."""


def correlations(
    states: Representations, dimensions: Sequence[int], check_cancelled: Callable[[], None] = never
) -> np.ndarray:
    """Pearson's correlation of dimensions over all positions, float64 of shape (dimensions, dimensions).

    That of a constant dimension with others is 0. Only the matrix and some positions are in memory.
    """
    chosen = np.asarray(dimensions)
    mean = np.concatenate(
        [np.asarray(states.states[layer], dtype=np.float64).mean(axis=0) for layer in _layers(states)]
    )
    sums = np.zeros((len(chosen), len(chosen)))
    for start in range(0, states.positions, CHUNK):
        check_cancelled()
        part = np.concatenate([states.states[layer, start : start + CHUNK] for layer in _layers(states)], axis=1)
        centred = part[:, chosen].astype(np.float64) - mean[chosen]
        sums += centred.T @ centred
    spread = np.sqrt(sums.diagonal())
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    sums *= scale
    sums *= scale[:, None]
    np.fill_diagonal(sums, 1.0)
    return np.clip(sums, -1.0, 1.0, out=sums)


def _layers(states: Representations) -> range:
    return range(states.layers + 1)


def tree_of(correlation: np.ndarray) -> np.ndarray:
    """SciPy's linkage of dimensions. The matrix is overwritten."""
    distance = np.subtract(1.0, np.abs(correlation, out=correlation), out=correlation)
    return np.asarray(linkage(squareform(distance, checks=False), "average"))


def clusters_at(tree: np.ndarray, threshold: float) -> np.ndarray:
    """The cluster of each dimension, counted from 0."""
    return np.asarray(fcluster(tree, threshold, "distance")) - 1


def one_of_each(clusters: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """The place of one random member of each cluster, ascending."""
    order = draw.permutation(len(clusters))
    _, first = np.unique(clusters[order], return_index=True)
    return np.sort(order[first])


def windows(clusters: np.ndarray, layers: np.ndarray) -> dict[int, int]:
    """How many clusters span how many layers, from the lowest to the highest of their dimensions, both counted.

    Args:
        clusters: the cluster of each dimension.
        layers: its layer.
    """
    count = int(clusters.max()) + 1
    low, high = np.full(count, np.iinfo(int).max), np.zeros(count, dtype=int)
    np.minimum.at(low, clusters, layers)
    np.maximum.at(high, clusters, layers)
    sizes, counts = np.unique(high - low + 1, return_counts=True)
    return dict(zip(sizes.tolist(), counts.tolist(), strict=True))
