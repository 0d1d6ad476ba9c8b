"""What the model card says of the forms of a result: what each is worth, and how each is loaded."""

from collections.abc import Iterable
from dataclasses import dataclass

from axformer.forms.kinds import BASE, COMPACT, KINDS, ONNX, ONNX_INT8, ZEROED
from axformer.heads import Head
from axformer.reporting.report import FormReport, Report, SpeedCell
from axformer.tasks.base import Task

_MANY = 32
"""The batch whose throughput the card shows."""
_UNKNOWN = "–"
_TITLES = {
    COMPACT: "Compact",
    ZEROED: "Zeroed, without this package",
    ONNX: "ONNX",
    ONNX_INT8: "ONNX in int8",
}


_EXAMPLES = {
    "question-answering": ('"a question", "a context"', ""),
    "multiple-choice": ('["a text"] * 2, ["one ending", "another"], padding=True', "[None]"),
}
"""What a tokenizer is given for an ONNX form, and what makes one row of it, where that is not one text."""


@dataclass(frozen=True)
class Loading:
    """How a model is loaded with transformers' own classes."""

    tag: str
    """The task as model hubs call it."""
    code: str
    """Python that loads the compact form, once ``axformer.auto`` is imported."""
    auto_class: str
    """The Auto class of its head."""


def loading_of(task: Task, head: Head) -> Loading:
    """By the pipeline of its task where transformers has one, else by the Auto class of its head."""
    name = head.auto_class.__name__
    if task.pipeline is not None:
        code = f'from transformers import pipeline\npredict = pipeline("{task.pipeline}", model="model")'
        return Loading(task.pipeline, code, name)
    code = f'from transformers import {name}\nmodel = {name}.from_pretrained("model")'
    return Loading(task.name.replace("_", "-"), code, name)


def forms_section(report: Report) -> str:
    """A row a form against the untouched model, and why others were not made."""
    metric = next((name for name in report.base.validation if name != "loss"), "loss")
    scores = [f"validation {name.replace('_', ' ')}" for name in dict.fromkeys(("loss", metric))]
    sizes = ["weight files, MB", "loads in, s", "memory, MB", "one input, ms", "inputs a second"]
    names = ["form", *sizes, *scores, "logits differ by"]
    rows = [_row(form, metric) for form in (report.base_form, *report.forms) if form.made]
    table = "\n".join(_line(cells) for cells in (names, ["---"] * len(names), *rows))
    notes = [f"- **{form.name}** was not made: {form.reason}." for form in report.forms if not form.made]
    return "\n".join([table, "", _legend(report), *([""] if notes else []), *notes])


def loading_section(report: Report, loading: Loading) -> str:
    """How each form that was made is loaded."""
    made = [form.name for form in report.forms if form.made]
    return "\n\n".join(
        f"### {_TITLES[name]}\n\n`{_where(name)}`: {KINDS[name].summary}.\n\n{_how(name, loading)}" for name in made
    )


def _row(form: FormReport, metric: str) -> list[str]:
    one, many = own_cell(form.speed, 1), own_cell(form.speed, _MANY)
    scores = dict.fromkeys(("loss", metric))
    return [
        "before the pass" if form.name == BASE.name else f"**{form.name}**",
        _number(form.bytes, 1e-6, ".1f"),
        _number(form.load_seconds, 1, ".2f"),
        _memory(form),
        _UNKNOWN if one is None else f"{one.p50_ms:.2f} ({one.p95_ms:.2f})",
        _UNKNOWN if many is None else f"{many.inputs_per_second:.0f}",
        *(_score(form, name) for name in scores),
        _number(form.max_logit_difference, 1, ".1e"),
    ]


def own_cell(cells: Iterable[SpeedCell], batch: int) -> SpeedCell | None:
    """The cell of the data's own lengths at a batch size, where it was measured."""
    return next((cell for cell in cells if cell.length is None and cell.batch == batch), None)


def _legend(report: Report) -> str:
    one = own_cell(report.base_form.speed, 1)
    repeats = "" if one is None else f", {one.repeats} repeats"
    return (
        "Speed is on rows of the validation data with their own lengths, all models taking turns: the median for one input "
        f"alone, in parentheses what 95 % kept below{repeats}, and inputs a second in batches of {_MANY}. Memory is the peak "
        "of a fresh process that loaded the form and computed one batch, in parentheses how much of it came with the form and "
        "not with the libraries; PyTorch is among these for the ONNX forms too, which can do without. Logits are compared "
        "with the model in memory over the whole validation data; in brackets are changes against the compact form. "
        "`report.json` has other lengths and batches."
    )


def _memory(form: FormReport) -> str:
    if form.peak_bytes is None or form.idle_bytes is None:
        return _UNKNOWN
    return f"{form.peak_bytes / 1e6:.0f} ({(form.peak_bytes - form.idle_bytes) / 1e6:.0f})"


def _score(form: FormReport, name: str) -> str:
    if form.validation is None:
        return _UNKNOWN
    change = "" if form.change is None else f" [{round(form.change.differences[name].value, 4) + 0.0:+.4f}]"
    return f"{form.validation[name]:.4f}{change}"


def _number(value: float | None, scale: float, form: str) -> str:
    return _UNKNOWN if value is None else format(value * scale, form)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _where(name: str) -> str:
    return f"{KINDS[name].directory}/"


def _how(name: str, loading: Loading) -> str:
    """Code that loads a form from the directory of the card."""
    if name == COMPACT:
        ours = _code('import axformer\nmodel = axformer.load("model")')
        theirs = _code(f"import axformer.auto\n{loading.code}")
        return f"{ours}\n\nor, where transformers' own classes are used:\n\n{theirs}"
    directory = KINDS[name].directory
    if name == ZEROED:
        auto = loading.auto_class
        return _code(f'from transformers import {auto}\nmodel = {auto}.from_pretrained("{directory}")')
    texts, rank = _EXAMPLES.get(loading.tag, ('"a text"', ""))
    return _code(
        f'import onnxruntime, transformers\nsession = onnxruntime.InferenceSession("{directory}/model.onnx")\n'
        f'inputs = transformers.AutoTokenizer.from_pretrained("{directory}")({texts}, return_tensors="np")\n'
        f"outputs = session.run(None, {{value.name: inputs[value.name]{rank} for value in session.get_inputs()}})"
    )


def _code(text: str) -> str:
    return f"```python\n{text}\n```"
