"""``analysis.html``: an analysis on one page, which needs neither network nor scripts, and can be printed.

The page shows what ``analysis.json`` holds. Text from outside goes to the template as text, which escapes it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from axformer.drawing.sheet import SHEET
from axformer.drawing.svg import inline
from axformer.reporting import analysis_pictures as pictures
from axformer.reporting.rendering import Table, made_with, render
from axformer.wire.analysis import Advice, Analysis, Chosen, ClustersReport, DriftReport, FeaturesReport, LayersReport

ANALYSIS_PAGE = "analysis.html"
"""File name of the page."""


@dataclass(frozen=True)
class Section:
    """One report on the page."""

    name: str
    title: str
    about: str
    """What is measured and how to read it."""
    pictures: list[Markup]
    tables: list[tuple[str, Table]]
    advice: Advice


_TITLES = {
    "layers": "How early the model knows",
    "cka": "Which layers repeat each other",
    "clusters": "Which dimensions repeat each other",
    "heads": "Which heads matter",
    "drift": "What training has changed",
    "features": "How little a linear classifier needs",
}
_ABOUT = {
    "layers": "A linear probe learns the labels from the hidden state of one layer. A layer is redundant if its probe has at "
    "least 99 % of the metric of a probe on all layers together, and is reliably better than guessing. The cosine between a "
    "layer's input and output needs no labels.",
    "cka": "Neighbours that say the same are candidates to go: a layer whose output aligns with its input adds little. The "
    "last layers of a fine-tuned model often differ from all others, because they hold the answer.",
    "clusters": "A dimension is a column of one hidden state. Dimensions whose values rise and fall together, in whichever "
    "layer, are in one cluster, of which one is enough.",
    "heads": "The importance of a head is the mean absolute gradient of the loss by a gate on it, as its share of the layer's "
    "sum. It costs one backward pass. The curve says how far to trust it: heads leave from the least important on.",
    "drift": "Both models read the same tokens. What has hardly changed needs little training after pruning; what has changed "
    "most holds what was learned.",
    "features": "Fewer layers first (LayerSelector), then one dimension of each cluster, then the fewest of the best "
    "dimensions that keep 99 % of the metric (CCFS). Each step is a linear classifier on frozen hidden states.",
}


def analysis_page(analysis: Analysis) -> str:
    """Render the page as HTML."""
    return render(
        ANALYSIS_PAGE,
        analysis=analysis,
        sheet=Markup(SHEET),  # noqa: S704 - our own CSS
        name=analysis.names.get("checkpoint", analysis.model_type),
        sections=list(_sections(analysis)),
        data=_data(analysis),
        environment=_environment(analysis),
    )


def _sections(analysis: Analysis) -> Iterator[Section]:
    for name in _TITLES:
        report: Any = getattr(analysis.reports, name)
        if report is not None:
            drawn = [Markup(inline(one)) for one in _PICTURES[name](report)]  # noqa: S704 - numbers and escaped words
            tables = list(_TABLES[name](report)) if name in _TABLES else []
            yield Section(name, _TITLES[name], _ABOUT[name], drawn, tables, report.advice)


_PICTURES: Mapping[str, Callable[[Any], Any]] = {
    "layers": pictures.pictures_of_layers,
    "heads": pictures.pictures_of_heads,
    "cka": pictures.pictures_of_cka,
    "clusters": pictures.pictures_of_clusters,
    "drift": pictures.pictures_of_drift,
    "features": pictures.pictures_of_features,
}


def _of_layers(report: LayersReport) -> Iterator[tuple[str, Table]]:
    probes = report.probes
    if probes is None:
        return
    rows = [
        [
            str(layer),
            f"{metric:.4f}",
            f"{metric / probes.oracle:.1%}" if probes.oracle > 0 else "–",
            "yes" if layer in probes.redundant else "no",
            "–" if layer == 0 else f"{report.contribution[layer - 1]:.3f}",
        ]
        for layer, metric in enumerate(probes.by_layer)
    ]
    name = probes.metric.replace("_", " ")
    yield "Layers", Table(["layers run", name, "of all layers'", "redundant", "cosine of input and output"], rows)
    if probes.early:
        exits = [
            [
                f"{one.may_differ:.0%}",
                f"{one.threshold:g}",
                f"{one.layers:.1f} of {len(report.contribution)}",
                f"{one.changed} of {one.rows:,}",
                f"{one.right:.4f}",
            ]
            for one in probes.early
        ]
        head = ["answers that may differ", "leave when so sure", "layers run, mean", "answers that differ", "right"]
        yield "Early exit by the probes", Table(head, exits)


def _of_clusters(report: ClustersReport) -> Iterator[tuple[str, Table]]:
    rows = [
        [
            f"{cut.threshold:.1f}",
            f"{cut.clusters:,}",
            f"{1 - cut.clusters / report.clustered:.1%}",
            "–" if cut.metric is None else f"{cut.metric:.4f}",
        ]
        for cut in report.cuts
    ]
    yield "Thresholds", Table(["threshold", "dimensions left", "fewer by", report.metric or "metric"], rows)
    spans = [[str(width), f"{share:.1%}"] for width, share in report.windows.items()]
    yield "Layers that a cluster at threshold 0.3 spans", Table(["layers", "share of clusters"], spans)


def _of_drift(report: DriftReport) -> Iterator[tuple[str, Table]]:
    values = {
        "importance in this model and change of attention": report.correlation,
        "importance in the other model and change of attention": report.correlation_against,
    }
    rows = [[name, f"{value:+.2f}"] for name, value in values.items() if value is not None]
    if rows:
        yield "Correlations over all heads", Table(["Pearson's correlation of", "r"], rows)


def _of_features(report: FeaturesReport) -> Iterator[tuple[str, Table]]:
    steps: dict[str, Chosen] = {
        "all layers": report.oracle,
        "fewer layers": report.selected,
        "one of each cluster": report.clustered,
        "fewest of the best": report.minimal,
    }
    rows = [
        [name, str(one.layers), f"{one.dimensions:,}", f"{one.metric:.4f}", f"{one.seconds:.2f}"]
        for name, one in steps.items()
    ]
    yield "Steps", Table(["step", "layers", "dimensions", report.metric.replace("_", " "), "seconds to fit"], rows)


_TABLES: Mapping[str, Callable[[Any], Iterator[tuple[str, Table]]]] = {
    "layers": _of_layers,
    "clusters": _of_clusters,
    "drift": _of_drift,
    "features": _of_features,
}


def _data(analysis: Analysis) -> Table:
    uses = {"data": "what measures", "train": "what probes learn from"}
    rows = [
        [uses[name], analysis.names.get(name, "–"), f"{data.rows:,}", f"{data.cut:,}", data.sha256]
        for name, data in analysis.data.items()
    ]
    return Table(["data", "name", "rows", "of them cut", "SHA-256"], rows)


def _environment(analysis: Analysis) -> Table:
    memory = f"{analysis.peak_bytes / 1e6:,.0f} MB"
    return made_with(analysis.environment, {"seed": str(analysis.seed), "most memory": memory})
