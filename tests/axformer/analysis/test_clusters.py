"""Clusters are SciPy's on the whole matrix of correlations."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from axformer.analysis.clusters import THRESHOLDS, clusters_at, correlations, one_of_each, tree_of, windows
from tests.axformer.analysis.states import random_states


def test_correlations_are_numpys() -> None:
    states = random_states(positions=2100)
    states.states[1, :, 3] = 2.0
    chosen = [*np.random.default_rng(0).permutation(states.dimensions)[:20], states.hidden + 3]
    found = correlations(states, chosen)
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(np.corrcoef(states.columns(chosen).astype(float).T))
    np.fill_diagonal(expected, 1.0)
    assert found == pytest.approx(expected, abs=1e-6)


def test_clusters_are_those_of_the_full_matrix() -> None:
    states = random_states(noise=0.1)
    everything = list(range(states.dimensions))
    distance = 1 - np.abs(np.corrcoef(states.columns(everything).astype(float).T))
    np.fill_diagonal(distance, 0.0)
    expected = linkage(squareform(distance, checks=False), "average")
    tree = tree_of(correlations(states, everything))
    counts = []
    for threshold in THRESHOLDS:
        found, wanted = clusters_at(tree, threshold), fcluster(expected, threshold, "distance")
        same = found[:, None] == found, wanted[:, None] == wanted
        assert np.array_equal(*same)
        counts.append(found.max() + 1)
    assert counts[0] == states.dimensions
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0]


def test_of_each_cluster_one_member_is_kept() -> None:
    clusters = np.array([0, 1, 0, 2, 2, 2, 1])
    for seed in range(5):
        kept = one_of_each(clusters, np.random.default_rng(seed))
        assert sorted(clusters[kept]) == [0, 1, 2]
        assert list(kept) == sorted(kept)


def test_a_window_reaches_from_the_lowest_to_the_highest_layer() -> None:
    assert windows(np.array([0, 0, 1, 2, 2, 2]), np.array([0, 3, 1, 4, 5, 5])) == {1: 1, 2: 1, 4: 1}
