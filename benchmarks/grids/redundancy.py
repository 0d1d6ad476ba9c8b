"""Where models are redundant: one run of ``axformer analyze`` for each model and set.

As in the paper (Dalvi and others, 2020, appendix A.1), tagging reads the frozen *pre-trained* model, and tasks over whole texts
the model that was fine-tuned for them.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from transformers import AutoTokenizer

from axformer.drawing.lines import Line, LineChart, lines_chart
from benchmarks.checkpoints import Checkpoint, checkpoint_named, run_logged
from benchmarks.finetune import BASE, BASES, LARGE_BASE
from benchmarks.harness import Arm, Cell, CellError, Content, Grid, Place
from benchmarks.rows import read_rows
from benchmarks.tables import NONE, table, where, words
from benchmarks.tasks.registry import task_named

PRETRAINED, FINETUNED = "pretrained", "finetuned"
_TITLES = {
    "ud-upos": "UD-EWT, parts of speech",
    "conll2000": "CoNLL-2000, chunks",
    "sst2": "SST-2 sentences",
    "stsb": "STS-B",
}
_ANALYZE = ["-c", "from axformer.cli.main import app; app()", "analyze"]
_WITHOUT_HEAD = "layers,cka,clusters,features"
"""The reports that do not ask what the head answers."""


def measure(cell: Cell, _: Arm, place: Place) -> Content:
    """Prepare a cell's set and its model, each if it was not done before, and analyze it in a process of its own.

    Raises:
        CellError: the training or the analysis failed; its log says why.
    """
    checkpoint, log = cell.checkpoint, place.home / "redundancy" / f"{cell.name}.log"
    place.prepare(checkpoint.data)
    if cell.arm == PRETRAINED:
        home = _pretrained(checkpoint, place)
    else:
        home = place.trained(replace(checkpoint, name=f"{checkpoint.name}-s{checkpoint.seed}"))
    data, train = (checkpoint.rows(place.sets, part) for part in ("validation", "train"))
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "analysis"
        command = [*_ANALYZE, str(home), f"--data={data}", f"--train={train}", f"--output={output}"]
        command += [f"--max-length={checkpoint.max_length}"]
        command += [f"--report={_WITHOUT_HEAD}"] if cell.arm == PRETRAINED else []
        if not run_logged(command, log):
            raise CellError(f"the analysis failed; see {log}")
        text = (output / "analysis.json").read_text(encoding="utf-8")
    for path, name in ((home, "checkpoint"), (data, data.name), (train, train.name)):
        text = text.replace(str(path), name)  # where the inputs lie on this machine matters to nobody else
    return {"report": json.loads(text)}


def _pretrained(checkpoint: Checkpoint, place: Place) -> Path:
    """The packaged model with an untrained head for the set's labels, which an analysis needs to read them."""
    output = place.home / "pretrained" / checkpoint.name
    if not output.is_dir():
        base, task = BASES[checkpoint.family].home(), task_named(checkpoint.task)
        rows = read_rows(checkpoint.rows(place.sets, "train"), task.form)
        partial = output.with_name(f"{output.name}.partial")
        task.auto_class.from_pretrained(base, **task.head(rows)).save_pretrained(partial)
        AutoTokenizer.from_pretrained(base).save_pretrained(partial)
        partial.rename(output)
    return output


GRID = Grid(
    "redundancy",
    {PRETRAINED: Arm(title="before fine-tuning"), FINETUNED: Arm(title="fine-tuned")},
    [
        Cell(replace(checkpoint_named(data), family=model, name=f"{data}-{model}"), arm)
        for model in (BASE, LARGE_BASE)
        for data, arm in (("ud-upos", PRETRAINED), ("conll2000", PRETRAINED), ("sst2", FINETUNED), ("stsb", FINETUNED))
    ],
    measure,
)


def _each(cells: Sequence[Content]) -> Iterator[tuple[list[str], Content]]:
    """The reports with their set and model, in the order of the grid."""
    by_name = {cell["cell"]: cell for cell in cells}
    for planned in GRID.cells:
        if planned.name in by_name:
            cell = by_name[planned.name]
            yield [_TITLES[cell["data"]], cell["model"]], cell["report"]["reports"] | {"arm": cell["arm"]}


def layers(cells: Sequence[Content]) -> str:
    """How well a linear probe does on each layer."""
    rows = []
    for about, reports in _each(cells):
        probes = reports["layers"]["probes"]
        values = probes["by_layer"]
        best = max(range(len(values)), key=values.__getitem__)
        enough = [layer for layer in range(len(values)) if layer in probes["redundant"]]
        figures = [f"{value:.3f}" for value in (probes["guess"], probes["oracle"], values[best])]
        told = [str(best), str(enough[0]) if enough else NONE, f"{len(enough)} of {len(values)}"]
        rows.append([*about, words(probes["metric"]), *figures, *told])
    head = ("set", "model", "metric", "guessing", "all layers", "best layer's", "which", "first with 99 %", "with 99 %")
    return table(head, rows)


def features(cells: Sequence[Content]) -> str:
    """The layers that are run, the dimensions that are read, and the metric of a probe on them."""
    rows = []
    for about, reports in _each(cells):
        steps = [reports["features"][step] for step in ("oracle", "selected", "minimal")]
        told = [f"{step['layers']}, {step['dimensions']:,}: {step['metric']:.3f}" for step in steps]
        own = NONE if reports["arm"] == PRETRAINED else f"{reports['features']['model']:.3f}"
        rows.append([*about, own, *told])
    head = ("set", "model", "the model itself", "all", "lowest layers", "fewest")
    return table(head, rows)


def pictures(cells: Sequence[Content]) -> dict[str, str]:
    """The probes of all sets, one picture a model: SVG by name."""
    drawn = {}
    for model in (BASE, LARGE_BASE):
        lines = [
            Line(
                about[0], [(float(layer), value) for layer, value in enumerate(reports["layers"]["probes"]["by_layer"])]
            )
            for about, reports in _each(where(cells, model=model))
        ]
        about = ("A linear probe on each layer alone", [model], "layers run (0 is the embeddings)", "metric")
        drawn[f"redundancy-probes-{model}"] = lines_chart(LineChart(f"probes-{model}", *about, lines))
    return drawn
