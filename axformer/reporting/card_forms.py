"""The forms of a result as card and page show them: their figures, and how to load each."""

from collections.abc import Iterable
from dataclasses import dataclass

from axformer.architectures.heads import Head
from axformer.forms.kinds import BASE, COMPACT, KINDS, ONNX, ONNX_FP16, ONNX_INT8, STOCK, ZEROED, Kind, seen_from
from axformer.reporting.deployable import MANY
from axformer.reporting.rendering import UNKNOWN, Table, number, passage
from axformer.tasks.base import Task
from axformer.wire.metrics import EMBEDDING, RERANKING, first_metric, in_words
from axformer.wire.report import FormReport, Report, SpeedCell

_TITLES = {
    STOCK: "Stock, without this package",
    COMPACT: "Compact",
    ZEROED: "Zeroed, without this package",
    ONNX: "ONNX",
    ONNX_FP16: "ONNX in half precision",
    ONNX_INT8: "ONNX in int8",
}

SENTENCES = "SentenceTransformer"
"""What loads an embedder."""
_RANKING = "text-ranking"
_EXAMPLES = {
    _RANKING: ('"a query", "a passage"', ""),
    "question-answering": ('"a question", "a context"', ""),
    "multiple-choice": ('["a text"] * 2, ["one ending", "another"], padding=True', "[None]"),
}
"""For tasks whose input is not one text: the tokenizer's arguments for an ONNX form, and the index that adds a batch axis."""


@dataclass(frozen=True)
class Loading:
    """How to load a model with transformers' own classes."""

    tag: str
    """The task's name on model hubs."""
    code: str
    """Python code that loads the compact form after ``import axformer.auto``."""
    auto_class: str
    """The Auto class of the model's head, or the class of sentence-transformers."""


def loading_of(task: Task, head: Head) -> Loading:
    """Load with the task's pipeline if transformers has one, otherwise with the Auto class of the head."""
    name = head.auto_class.__name__
    if task.name == EMBEDDING:
        return Loading("sentence-similarity", _loaded_by(SENTENCES, "model"), SENTENCES)
    if task.name == RERANKING:
        return Loading(_RANKING, _loaded_by(name, "model"), name)
    if task.pipeline is not None:
        code = f'from transformers import pipeline\npredict = pipeline("{task.pipeline}", model="model")'
        return Loading(task.pipeline, code, name)
    return Loading(task.name.replace("_", "-"), _loaded_by(name, "model"), name)


def _loaded_by(name: str, directory: str) -> str:
    """Code that loads a model by an Auto class, or by sentence-transformers."""
    if name == SENTENCES:
        return f'from sentence_transformers import {name}\nmodel = {name}("{directory}")'
    return f'from transformers import {name}\nmodel = {name}.from_pretrained("{directory}")'


def forms_table(report: Report) -> Table:
    """The untouched model and every form that was made, one row each."""
    metric = first_metric(report.base.validation)
    scores = [f"validation {in_words(name)}" for name in dict.fromkeys(("loss", metric))]
    sizes = ["weight files, MB", "loads in, s", "memory, MB", "one input, ms", "inputs a second"]
    rows = [_row(form, metric) for form in (report.base_form, *report.forms) if form.made]
    return Table(["form", *sizes, *scores, "logits differ by"], rows)


@dataclass(frozen=True)
class LoadingForm:
    """How to load one form."""

    title: str
    where: str
    """Its directory or file in the result."""
    summary: str
    programs: list[str]
    """Alternative Python programs to run in the directory of the result."""


def loading_forms(made: Iterable[str], loading: Loading, inside: str = "") -> list[LoadingForm]:
    """How to load forms.

    Args:
        made: the names of the forms that there are.
        loading: how their model is loaded.
        inside: the directory of the result that the reader is in, which leaves out what does not lie there; empty for its top.
    """
    return [
        LoadingForm(_TITLES[name], seen_from(kind.place, inside), kind.summary, _programs(kind, loading, inside))
        for name in made
        if (kind := KINDS[name]).directory == inside or not inside
    ]


def _row(form: FormReport, metric: str) -> list[str]:
    one, many = own_cell(form.speed, 1), own_cell(form.speed, MANY)
    scores = dict.fromkeys(("loss", metric))
    return [
        "before the pass" if form.name == BASE.name else form.name,
        number(form.bytes, ".1f", 1e-6),
        number(form.load_seconds, ".2f"),
        _memory(form),
        UNKNOWN if one is None else f"{one.p50_ms:.2f} ({one.p95_ms:.2f})",
        UNKNOWN if many is None else f"{many.inputs_per_second:.0f}",
        *(_score(form, name) for name in scores),
        number(form.max_logit_difference, ".1e"),
    ]


def own_cell(cells: Iterable[SpeedCell], batch: int) -> SpeedCell | None:
    """The cell of the data's own lengths at a batch size; None if it was not measured."""
    return next((cell for cell in cells if cell.length is None and cell.batch == batch), None)


def forms_legend(report: Report) -> str:
    """How the figures of the table were measured."""
    one = own_cell(report.base_form.speed, 1)
    return passage("forms", None if one is None else one.repeats, MANY, report.one_position_ms is not None)


def _memory(form: FormReport) -> str:
    if form.peak_bytes is None or form.idle_bytes is None:
        return UNKNOWN
    return f"{form.peak_bytes / 1e6:.0f} ({(form.peak_bytes - form.idle_bytes) / 1e6:.0f})"


def _score(form: FormReport, name: str) -> str:
    if form.validation is None:
        return UNKNOWN
    change = "" if form.change is None else f" [{round(form.change.differences[name].value, 4) + 0.0:+.4f}]"
    return f"{form.validation[name]:.4f}{change}"


def _programs(kind: Kind, loading: Loading, inside: str) -> list[str]:
    """Programs that load a form from the directory of the card."""
    if kind.name == COMPACT:
        return ['import axformer\nmodel = axformer.load("model")', f"import axformer.auto\n{loading.code}"]
    directory = "." if inside else kind.directory
    if kind.name in (STOCK, ZEROED):
        return [_loaded_by(loading.auto_class, directory)]
    texts, rank = _EXAMPLES.get(loading.tag, ('"a text"', ""))
    return [
        f'import onnxruntime, transformers\nsession = onnxruntime.InferenceSession("{seen_from(kind.place, inside)}")\n'
        f'inputs = transformers.AutoTokenizer.from_pretrained("{directory}")({texts}, return_tensors="np")\n'
        f"outputs = session.run(None, {{value.name: inputs[value.name]{rank} for value in session.get_inputs()}})"
    ]
