"""Writes ``docs/redundancy.md`` and its pictures from the files of the cells alone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from axformer.drawing.lines import Line, Lines, lines_chart
from axformer.reporting.analysis_pictures import picture_of_cka
from axformer.wire.analysis import Analysis
from benchmarks.compress.tables import NONE, table
from benchmarks.redundancy.grid import MODELS, cells

RESULTS = Path("benchmarks/results/redundancy")
DOCUMENT = Path("docs/redundancy.md")
Content = Mapping[str, Any]
_THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
_TITLES = {
    "ud-upos": "UD-EWT, parts of speech",
    "conll2000": "CoNLL-2000, chunks",
    "sst2": "SST-2 sentences",
    "stsb": "STS-B",
}


_BESIDE_PAPER = (
    (
        "neighbouring layers are most alike, the last pair less (5.1)",
        "so before fine-tuning; after it one direction of the upper layers may hold nearly all that varies, and CKA compares "
        "little else",
    ),
    (
        "one dimension of each cluster at 0.7 is 15 % of them and loses nothing (5.2)",
        "13 to 33 % are left there; six of eight lost at most a point and a half, the other two four",
    ),
    (
        "words are learned in low layers, whole texts in high ones (6.1)",
        "so: tagging is read best after two or three layers, whole texts after the last or the last but one",
    ),
    (
        "tagging needs few layers and many dimensions, whole texts the opposite (7)",
        "so: 215 to 699 dimensions of one or two layers, against 8 to 100 of four to eleven",
    ),
    ("at most 10 % of the dimensions keep 97 % of the metric (7)", "so everywhere, with 0.1 to 10 %"),
)


def read_cells(results: Path) -> list[tuple[Content, Analysis]]:
    """All existing cells with their analyses, in the order of the grid."""
    files = [file for cell in cells() if (file := results / f"{cell.name}.json").is_file()]
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return [(one, Analysis.model_validate(one["analysis"])) for one in found]


def write_pictures(found: Sequence[tuple[Content, Analysis]], images: Path) -> None:
    """Draw the probes of all sets, one picture a model, and the alignment of each model's layers on its first set."""
    for model in MODELS:
        of_model = [(about, one) for about, one in found if about["model"] == model]
        lines = [
            Line(_TITLES[about["data"]], [(float(layer), value) for layer, value in enumerate(probes.by_layer)])
            for about, one in of_model
            if one.reports.layers is not None and (probes := one.reports.layers.probes) is not None
        ]
        if lines:
            name = f"probes-{model}"
            chart = Lines(
                name, "A linear probe on each layer alone", [model], "layers run (0 is the embeddings)", "metric", lines
            )
            (images / f"redundancy-{name}.svg").write_text(lines_chart(chart), encoding="utf-8")
        first = next((one for _, one in of_model if one.reports.cka is not None), None)
        if first is not None and first.reports.cka is not None:
            drawn = picture_of_cka(first.reports.cka)
            (images / f"redundancy-cka-{model}.svg").write_text(drawn, encoding="utf-8")


def document_of(found: Sequence[tuple[Content, Analysis]]) -> str:
    """Write the document.

    Args:
        found: the cells, at least one.
    """
    partial = " **The others are not measured yet.**" if len(found) < len(cells()) else ""
    return "\n".join(
        [
            f"""# Where models are redundant

Made by `python -m benchmarks.redundancy`: {len(found)} of {len(cells())} cells.{partial} Each is one run of
[`axformer analyze`](analyze.md) with its defaults: 2,000 rows to measure on at most, and 2,000 others for probes to learn
from. As in the paper (Dalvi and others, 2020, appendix A.1), tagging reads the frozen model as it was before any fine-tuning,
and tasks over whole texts the model that was fine-tuned for them. Figures are of validation rows, on which layers and
dimensions were chosen too, so they are a little too good.
""",
            *_layers(found),
            *_clusters(found),
            *_features(found),
            *(_beside_paper() if len(found) == len(cells()) else []),
            *_cost(found),
        ]
    )


def _beside_paper() -> list[str]:
    heads = ["the paper, on BERT and XLNet", "here"]
    return ["## Beside the paper\n", *table(heads, _BESIDE_PAPER), ""]


def _layers_run(count: int) -> str:
    return "1 layer" if count == 1 else f"{count} layers"


def _about(about: Content) -> list[str]:
    return [_TITLES[about["data"]], about["model"], "before fine-tuning" if about["is_pretrained"] else "fine-tuned"]


def _layers(found: Sequence[tuple[Content, Analysis]]) -> Iterator[str]:
    rows = []
    for about, one in found:
        report = one.reports.layers
        if report is not None and report.probes is not None:
            probes = report.probes
            best = max(range(len(probes.by_layer)), key=probes.by_layer.__getitem__)
            enough = next((layer for layer, value in enumerate(probes.by_layer) if layer in probes.redundant), None)
            figures = [f"{value:.3f}" for value in (probes.guess, probes.oracle, probes.by_layer[best])]
            told = [str(best), NONE if enough is None else str(enough), f"{len(probes.redundant)} of {one.layers + 1}"]
            rows.append([*_about(about), probes.metric.replace("_", " "), *figures, *told])
    heads = [
        "set",
        "model",
        "as it is",
        "metric",
        "guessing",
        "oracle",
        "best layer's",
        "which",
        "first with 99 %",
        "layers with 99 %",
    ]
    yield "## Layers (the paper's figure 4 and table 2)\n"
    yield "\n".join(table(heads, rows))
    yield (
        "\nThe *oracle* is a probe on all layers together; a layer *with 99 %* has a probe that reaches so much of it and is "
        "reliably better than guessing. Layer 0 is the embeddings.\n"
    )
    for model in dict.fromkeys(about["model"] for about, _ in found):
        yield f"![The metric of a linear probe on each layer of {model}, set by set](images/redundancy-probes-{model}.svg)\n"
    yield "## What layers repeat (figure 1)\n"
    for model in dict.fromkeys(about["model"] for about, _ in found):
        yield f"![Linear CKA of every pair of layers of {model}](images/redundancy-cka-{model}.svg)\n"


def _clusters(found: Sequence[tuple[Content, Analysis]]) -> Iterator[str]:
    rows = []
    for about, one in found:
        report = one.reports.clusters
        if report is not None:
            cuts = {round(cut.threshold, 1): cut for cut in report.cuts}
            told = [_cut(cuts.get(threshold), report.clustered) for threshold in _THRESHOLDS]
            oracle = NONE if report.oracle is None else f"{report.oracle:.3f}"
            rows.append([*_about(about), f"{report.clustered:,} of {report.dimensions:,}", oracle, *told])
    yield "## Clusters of dimensions (figure 2 and table 1)\n"
    yield "\n".join(table(["set", "model", "as it is", "clustered", "oracle", *map(str, _THRESHOLDS)], rows))
    yield (
        "\nBelow each threshold: the share of dimensions that is left when one of each cluster stays, and the metric of a "
        "probe on them. A threshold is the largest average distance within a cluster; a distance is one minus the absolute "
        "correlation.\n"
    )


def _cut(cut: Any, clustered: int) -> str:
    if cut is None:
        return NONE
    left = f"{cut.clusters / clustered:.0%}"
    return left if cut.metric is None else f"{left}, {cut.metric:.3f}"


def _features(found: Sequence[tuple[Content, Analysis]]) -> Iterator[str]:
    rows = []
    for about, one in found:
        report = one.reports.features
        if report is not None:
            steps = (report.oracle, report.selected, report.clustered, report.minimal)
            told = [f"{_layers_run(step.layers)}, {step.dimensions:,}: {step.metric:.3f}" for step in steps]
            whole = NONE if about["is_pretrained"] else f"{report.model:.3f}"
            rows.append([*_about(about), whole, *told])
    yield "## Fewest features (table 3)\n"
    heads = ["set", "model", "as it is", "the model itself", "all", "lowest layers", "one of each cluster", "fewest"]
    yield "\n".join(table(heads, rows))
    yield (
        "\nEach cell: layers that are run, dimensions that are read, and the metric of a probe on them. `axformer features` "
        "makes the last one.\n"
    )


def _cost(found: Sequence[tuple[Content, Analysis]]) -> Iterator[str]:
    rows = [
        [
            *_about(about)[:2],
            f"{one.data['data'].rows:,}",
            f"{one.seconds / 60:.1f}",
            f"{one.peak_bytes / 1e9:.2f}",
        ]
        for about, one in found
    ]
    yield "## Time and memory\n"
    yield "\n".join(table(["set", "model", "rows measured on", "minutes", "GB at most"], rows))
    yield "\nOne thread, on a machine that did other work beside it.\n"
