"""The form for a new job, filled in from one that was posted before. Nothing secret is filled in."""

from collections.abc import Mapping
from typing import Any

from api.pages.analysis_form import AnalysisForm
from api.pages.job_form import COLUMN, FINETUNE, KNOB, LISTS, REFERENCES, SEPARATORS, JobForm
from axformer.config import KNOBS, PaperVariant, Preset, make_config
from axformer.config.earlier import of_today
from axformer.forms.kinds import COMPACT
from axformer.wire.base import NAME_LENGTH
from axformer.wire.heads import NewHead
from axformer.wire.kinds import JobKind
from store.references import HUB_PREFIX, shown
from store.tables.jobs import Job

_PLAIN = ("name", "preset", "device", "priority")
_DATA = tuple(name for name in REFERENCES if name != "checkpoint")


def form_like(job: Job) -> tuple[JobForm, list[str]]:
    """A form that posts the job again, and what must be typed or looked at again, for people."""
    given = {name: reference for name in REFERENCES if (reference := getattr(job, name)) is not None}
    values = {name: str(getattr(job, name)) for name in _PLAIN}
    values |= {name: one["uri"] for name, one in given.items() if shown(one["uri"]) == one["uri"]}
    values |= {COLUMN + role: name for role, name in _columns_of(job.validation).items()}
    values |= {KNOB + name: _text(name, value) for name, value in _changed_knobs(job).items()}
    values |= {FINETUNE + name: str(value) for name, value in (job.finetune or {}).items() if value is not None}
    if job.head is not None and not _has_commas(job.head):
        values["head"] = str(NewHead.model_validate(job.head))
    values["labels"] = " ".join(f"{key}:{value}" for key, value in job.labels.items() if not SEPARATORS.search(value))
    return JobForm(values, forms=tuple(job.forms) or (COMPACT,)), _left_out(job, given)


def analysis_like(job: Job) -> tuple[AnalysisForm, list[str]]:
    """A form that analyzes the model of a job on its data, and what must be typed or looked at again."""
    form, left_out = form_like(job)
    values = dict(form.values)
    if job.kind is not JobKind.ANALYSIS:
        values["name"] = f"analysis of {job.name}"[:NAME_LENGTH]
    if job.against is not None and shown(job.against["uri"]) == job.against["uri"]:
        values["against"] = job.against["uri"]
    asked = job.analysis or {}
    values |= {"max_length": str(job.config.get("max_length") or ""), "rows": str(asked.get("rows") or "")}
    return AnalysisForm(values, reports=tuple(asked.get("reports") or ())), left_out


def _columns_of(reference: Mapping[str, Any]) -> dict[str, str]:
    """The columns that are not called like their role."""
    return {role: name for role, name in (reference.get("columns") or {}).items() if name != role}


def _changed_knobs(job: Job) -> dict[str, Any]:
    """The knobs that differ from the preset; those of an earlier version that are gone are passed over."""
    method = {"method": job.config["method"]} if "method" in job.config else {}
    preset = job.preset if job.preset in list(Preset) else Preset.PAPER
    usual = PaperVariant().model_dump(mode="json") | make_config(preset, method).model_dump(mode="json")
    return {name: value for name, value in of_today(job.config).items() if name in KNOBS and value != usual.get(name)}


def _text(name: str, value: Any) -> str:
    """The value of a knob as it is typed."""
    if name in LISTS and isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def _has_commas(head: Mapping[str, Any]) -> bool:
    """Whether a class of a new head has a name that the form cannot hold."""
    return any("," in name for name in head["labels"])


def _left_out(job: Job, given: Mapping[str, Mapping[str, Any]]) -> list[str]:
    said = [
        f"The address of {name} had a password or a query, which no page repeats: type it again."
        for name, one in given.items()
        if shown(one["uri"]) != one["uri"]
    ]
    if any(one["uri"].startswith(HUB_PREFIX) for one in given.values()):
        said.append("A token for the model hub, where one is needed, must be typed again.")
    if any(SEPARATORS.search(value) for value in job.labels.values()):
        said.append("Labels with spaces or commas are not filled in; the API takes them.")
    if job.head is not None and _has_commas(job.head):
        said.append("Its new head has classes with commas in their names, which the API takes and the form does not.")
    if job.webhook is not None:
        said.append("Its webhook is not filled in.")
    if any(one.get("sha256") for one in given.values()):
        said.append("The digests that it expected of its inputs are not asked for again.")
    if any(_columns_of(given[name]) != _columns_of(job.validation) for name in _DATA if name in given):
        said.append("Its data sets have different columns; those of the validation data are filled in for all.")
    if job.kind is JobKind.EXPORT:
        said.append("It exported one model of another job; posted again, the whole pass runs.")
    return said
