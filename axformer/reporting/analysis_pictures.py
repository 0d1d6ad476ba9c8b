"""The pictures of an analysis, report by report, as SVG."""

from collections.abc import Iterator, Sequence

from axformer.drawing.heatmap import Heatmap, heatmap
from axformer.drawing.lines import Line, LineChart, Point, lines_chart
from axformer.wire.analysis import CkaReport, ClustersReport, DriftReport, FeaturesReport, HeadsReport, LayersReport

_MOST_CLASSES = 40
"""Classes of a picture; more are in the file alone."""
NEAR = 0.99
_LAYERS = "layers run (0 is the embeddings)"
_NARROW = 0.9
"""Share of the variance along one direction from which a picture says so."""


def pictures_of_layers(report: LayersReport) -> Iterator[str]:
    """Probes by layer, by class, and the contribution of layers."""
    probes = report.probes
    if probes is not None:
        name = probes.metric.replace("_", " ")
        told = f"{name} of the model itself: {probes.model:.4f}"
        levels = [*_near("all layers together", probes.oracle), ("guessing", probes.guess)]
        line = "probe", _numbered(probes.by_layer)
        yield _line("probes", "A probe on each layer alone", told, _LAYERS, name, line, levels)
        if probes.by_class is not None and 2 < len(probes.by_class) <= _MOST_CLASSES:
            yield _by_class(probes.by_class)
    told, line = (
        "a layer near 1 changes little where the model is read",
        ("mean cosine", _numbered(report.contribution)),
    )
    title = "How alike input and output of each layer are"
    yield _line("contribution", title, told, "layer (0 is the lowest)", "mean cosine", line)


def _by_class(by_class: dict[str, tuple[float, ...]]) -> str:
    names, values = list(by_class), list(by_class.values())
    states = [str(state) for state in range(len(values[0]))]
    told = ["share of the positions of each class that the probe tells right"]
    matrix = Heatmap("classes", "The same by class", told, names, states, values, "class", "layers run", 0.0, 1.0)
    return heatmap(matrix)


def pictures_of_heads(report: HeadsReport) -> Iterator[str]:
    """Importance by layer and head, and the model without heads."""
    most = max(max(row) for row in report.importance)
    yield _matrix("importance", "Importance of heads", "share of the layer's importance", report.importance, most)
    line = "the model", [(100 * kept.removed, kept.metric) for kept in report.curve]
    levels = [("90 % of the whole model", 0.9 * report.curve[0].metric), ("guessing", report.guess)]
    title, told = "The model without its least important heads", "the same weights, without training"
    name = report.metric.replace("_", " ")
    yield _line("heads", title, told, "per cent of the heads removed", name, line, levels)


def _matrix(name: str, title: str, told: str, values: Sequence[Sequence[float]], most: float) -> str:
    """A matrix of layers and heads, the highest layer on top."""
    layers = list(range(len(values)))[::-1]
    heads = [str(head) for head in range(len(values[0]))]
    rows = [values[layer] for layer in layers]
    form = ".2f" if most >= 0.1 else ".3f"
    return heatmap(Heatmap(name, title, [told], list(map(str, layers)), heads, rows, "layer", "head", 0.0, most, form))


def pictures_of_cka(report: CkaReport) -> Iterator[str]:
    """The alignment of every pair of states, but for those that are the same at every position."""
    states = [state for state in range(len(report.matrix)) if report.matrix[state][state]]
    told = [
        f"linear CKA of hidden states over {report.positions:,} positions, debiased; 1 is the same up to rotation and scale"
    ]
    if len(states) < len(report.matrix):
        left_out = [str(state) for state in range(len(report.matrix)) if state not in states]
        told.append(f"after {', '.join(left_out)} layers the state is the same everywhere, and left out")
    narrow = [layer for layer, share in enumerate(report.leading) if layer and share >= _NARROW]
    if narrow:
        after = (
            f"after {', '.join(map(str, narrow))} layers"
            if len(narrow) < len(report.matrix) - 1
            else "after every layer"
        )
        told.append(
            f"one direction holds {_NARROW:.0%} or more of what varies {after}, and CKA compares little else there"
        )
    values = [[report.matrix[one][other] for other in states] for one in states]
    if values:
        names, least = list(map(str, states)), min(0.5, *map(min, values))
        title = "How much layers say the same"
        yield heatmap(Heatmap("cka", title, told, names, names, values, "layers run", _LAYERS, least, 1.0))


def pictures_of_clusters(report: ClustersReport) -> Iterator[str]:
    """Dimensions left, and what a probe reads from them, by threshold."""
    axis = "threshold: largest mean distance within a cluster"
    title = "Dimensions that are left of one of each cluster"
    told = f"of {report.clustered:,} dimensions, correlated over {report.positions:,} positions"
    left = [(cut.threshold, 100 * cut.clusters / report.clustered) for cut in report.cuts]
    yield _line("clusters", title, told, axis, "per cent", ("dimensions left", left), form=".1f")
    measured = [(cut.threshold, cut.metric) for cut in report.cuts if cut.metric is not None]
    if measured and report.oracle is not None and report.metric is not None:
        name, levels = report.metric.replace("_", " "), _near("all dimensions", report.oracle)
        yield _line("thresholds", "What a probe reads from them", "", axis, name, ("probe", measured), levels)


def pictures_of_drift(report: DriftReport) -> Iterator[str]:
    """States, attention and important heads of two models."""
    title, told = "How alike both models' hidden states are", "where they are read"
    yield _line("cosine", title, told, _LAYERS, "mean cosine", ("mean cosine", _numbered(report.cosine)))
    line = "distance", _numbered(report.distance)
    yield _line("distance", "How far apart they are", "over all tokens", _LAYERS, "mean Euclidean distance", line)
    most = max(max(max(row) for row in report.attention), 1e-3)
    told = "mean Jensen-Shannon divergence in nats; 0 is the same, 0.69 all different"
    yield _matrix("attention", "How much attention has changed", told, report.attention, most)
    if report.recall is not None:
        points = [(100 * step.removed, step.recall) for step in report.recall]
        title, across = (
            "Important heads that the other model's ranking keeps",
            "per cent of the other model's heads removed",
        )
        yield _line("recall", title, "", across, "recall", ("recall", points))


def pictures_of_features(report: FeaturesReport) -> Iterator[str]:
    """Probes by depth, and by number of dimensions."""
    name, every = report.metric.replace("_", " "), report.clustered
    title = "A probe on the embeddings and the lowest layers together"
    told = f"{name} of the model itself: {report.model:.4f}"
    levels = [*_near("all layers", report.oracle.metric), ("guessing", report.guess)]
    yield _line("depth", title, told, _LAYERS, name, ("probe", _numbered(report.by_depth)), levels)
    told, levels = f"of {every.dimensions:,} dimensions after clustering", _near("all of them", every.metric)
    line = "probe", [(float(count), metric) for count, metric in report.by_count]
    yield _line("dimensions", "A probe on the best dimensions", told, "dimensions", name, line, levels)


def _near(name: str, value: float) -> list[tuple[str, float]]:
    """The line across at the best value, and the one at which a probe is as good."""
    return [(name, value), ("99 % of it", NEAR * value)]


def _line(
    name: str,
    title: str,
    told: str,
    across: str,
    upright: str,
    line: tuple[str, Sequence[Point]],
    levels: Sequence[tuple[str, float]] = (),
    form: str = ".4f",
) -> str:
    """A picture of one line; see :class:`axformer.drawing.lines.LineChart`."""
    subtitle = [told] if told else []
    return lines_chart(LineChart(name, title, subtitle, across, upright, [Line(*line)], levels, form=form))


def _numbered(values: Sequence[float]) -> list[tuple[float, float]]:
    return [(float(index), value) for index, value in enumerate(values)]
