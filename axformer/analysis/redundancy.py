"""The reports ``cka``, ``clusters`` and ``features``: what layers and dimensions repeat (Dalvi et al., 2020)."""

import time

import numpy as np

from axformer.analysis.advice import Given, advise, can_drop, in_words
from axformer.analysis.cka import compare
from axformer.analysis.clusters import (
    THRESHOLDS,
    WINDOW_THRESHOLD,
    clusters_at,
    correlations,
    one_of_each,
    tree_of,
    windows,
)
from axformer.analysis.features import select
from axformer.analysis.labels import can_probe
from axformer.analysis.probing import NEAR, Probing
from axformer.analysis.study import Study
from axformer.wire.analysis import Advice, CkaReport, ClustersReport, Cut, FeaturesReport
from axformer.wire.steps import Counter, StepName

ALIKE = 0.98
"""Neighbouring states with at least this alignment say nearly the same."""


def cka_report(study: Study, given: Given) -> CkaReport:
    """Compare all layers of a study's model."""
    began = time.monotonic()
    most, states = study.bounds.cka_positions, study.data.states
    found = compare(states, most, study.seed, study.surroundings.on_step, study.surroundings.check_cancelled)
    return CkaReport(
        matrix=tuple(tuple(row) for row in found.alignment.tolist()),
        leading=tuple(found.leading.tolist()),
        positions=min(most, states.positions),
        advice=_alike(study, found.alignment, given),
        seconds=time.monotonic() - began,
    )


def _alike(study: Study, matrix: np.ndarray, given: Given) -> Advice:
    """Drop the layers whose output is most like their input, at most half of all."""
    beside = matrix.diagonal(offset=1)
    order = [int(layer) for layer in np.argsort(-beside, kind="stable")]
    chosen: list[int] = []
    for layer in order[: max(1, len(order) // 2)]:
        if (beside[layer] >= ALIKE or not chosen) and can_drop(study.checkpoint, sorted([*chosen, layer])):
            chosen.append(layer)
    if not chosen:
        return advise(
            f"No layer of a {study.checkpoint.architecture.model_type} model goes by itself; compression takes parts."
        )
    chosen.sort()
    least, named = float(beside[chosen].min()), in_words(chosen)
    if least < ALIKE:
        return advise(
            f"No layer hands on nearly what it receives (CKA of {ALIKE:g}); the closest is {named}, counted from 0 "
            f"({least:.3f})."
        )
    return advise(
        f"Input and output of {named}, counted from 0, are nearly the same (CKA of at least {least:.3f}).",
        given.prune("layers", "--method", "layers", set_=["strategy=explicit", f"layers={chosen}".replace(" ", "")]),
    )


def clusters_report(study: Study) -> ClustersReport:
    """Cluster the dimensions of a study's model."""
    began = time.monotonic()
    basis = study.train or study.data
    states, draw = basis.states, np.random.default_rng(study.seed)
    chosen = np.sort(draw.permutation(states.dimensions)[: study.bounds.dimensions])
    counter = Counter(StepName.CLUSTERING, len(THRESHOLDS) + 1, study.surroundings.on_step)
    counter.begin("correlations")
    tree = tree_of(correlations(states, chosen.tolist(), study.surroundings.check_cancelled))
    probing = None if study.train is None else Probing(study)
    oracle = None if probing is None else probing.on(chosen.tolist()).metric
    cuts, spans = [], dict[int, float]()
    for threshold in THRESHOLDS:
        counter.advance(detail=f"threshold {threshold:g}")
        clusters = clusters_at(tree, threshold)
        kept = chosen[one_of_each(clusters, draw)].tolist()
        metric = None if probing is None else probing.on(kept).metric
        cuts.append(Cut(threshold=threshold, clusters=len(kept), metric=metric))
        if threshold == WINDOW_THRESHOLD:
            counts = windows(clusters, chosen // states.hidden)
            spans = {width: count / len(kept) for width, count in counts.items()}
    counter.advance()
    return ClustersReport(
        dimensions=states.dimensions,
        clustered=len(chosen),
        positions=states.positions,
        metric=None if probing is None else study.metric,
        oracle=oracle,
        cuts=tuple(cuts),
        windows=spans,
        advice=_fewest_clusters(cuts, len(chosen), oracle, study),
        seconds=time.monotonic() - began,
    )


def _fewest_clusters(cuts: list[Cut], clustered: int, oracle: float | None, study: Study) -> Advice:
    if not can_probe(study.checkpoint.task):
        cut = next(cut for cut in cuts if cut.threshold == WINDOW_THRESHOLD)
        return advise(
            f"{cut.clusters:,} of {clustered:,} dimensions are left of one of each cluster at threshold {cut.threshold:g}. "
            "This task has no linear classifier to read fewer; compression takes heads and neurons."
        )
    if oracle is None or not study.guessing.is_beaten(oracle):
        cut = next(cut for cut in cuts if cut.threshold == WINDOW_THRESHOLD)
        found = f"{cut.clusters:,} of {clustered:,} dimensions are left of one of each cluster at threshold {cut.threshold:g}"
    else:
        cut = min(
            (cut for cut in cuts if cut.metric is not None and cut.metric >= min(oracle, NEAR * oracle)),
            key=lambda cut: cut.clusters,
            default=cuts[0],
        )
        found = (
            f"{cut.clusters:,} of {clustered:,} dimensions, one of each cluster at threshold {cut.threshold:g}, carry at least "
            "99 % of the metric of all"
        )
    return advise(f"{found}. The report features says how few of how few layers a linear classifier needs.")


def features_report(study: Study) -> FeaturesReport:
    """Select the dimensions that are enough for a linear classifier."""
    began, selection = time.monotonic(), select(study)
    states, minimal, guess = study.data.states, selection.minimal, study.guessing
    told = "" if guess.is_beaten(minimal.metric) else f"; that is not reliably better than guessing ({guess.value:.4f})"
    sentence = (
        f"{minimal.dimensions:,} of {states.dimensions:,} dimensions after {minimal.layers} of {states.layers} layers give a "
        f"linear classifier {minimal.metric:.4f} {study.metric.replace('_', ' ')}, all dimensions "
        f"{selection.oracle.metric:.4f}{told}."
    )
    return FeaturesReport(
        metric=study.metric,
        model=study.model,
        guess=guess.value,
        oracle=selection.oracle,
        by_depth=selection.by_depth,
        selected=selection.selected,
        clustered=selection.clustered,
        minimal=minimal,
        by_count=selection.by_count,
        chosen=tuple(f"hidden.{place // states.hidden}.{place % states.hidden}" for place in selection.dimensions),
        advice=advise(sentence),
        seconds=time.monotonic() - began,
    )
