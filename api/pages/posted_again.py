"""The form for a new job, filled in from one that was posted before. Nothing secret is filled in."""

from collections.abc import Mapping
from typing import Any

from api.pages.job_form import COLUMN, FINETUNE, GOAL, KNOB, LISTS, SEPARATORS, AnalysisForm, JobForm
from axformer.config import KNOBS, Preset, changed_knobs
from axformer.forms.kinds import COMPACT
from axformer.wire.base import NAME_LENGTH
from axformer.wire.heads import NewHead
from axformer.wire.run import DATA
from axformer.wire.states import JobKind
from store.references import HUB_PREFIX, shown
from store.tables.jobs import Job

_PLAIN = ("name", "device", "priority")


def form_like(job: Job) -> tuple[JobForm, list[str]]:
    """A form that posts the job again, and what must be typed or looked at again, for people."""
    values, left_out = _inputs_like(job)
    run = job.run
    values |= _wish_of(run)
    values |= {KNOB + name: _text(name, value) for name, value in _given_knobs(job).items() if name in KNOBS}
    settings = run.get("finetune") or {}
    values |= {FINETUNE + name: str(value) for name, value in settings.items() if value is not None}
    values["pooling"] = run.get("pooling") or ""
    head = run.get("head")
    if head is not None and _has_commas(head):
        left_out.append(
            "Its new head has classes with commas in their names, which the API takes and the form does not."
        )
    elif head is not None:
        values["head"] = str(NewHead.model_validate(head))
    if job.kind is JobKind.EXPORT:
        left_out.append("It exported one model of another job; posted again, the whole pass runs.")
    return JobForm(values, forms=tuple(job.spec.get("forms", (COMPACT,)))), left_out


def analysis_like(job: Job) -> tuple[AnalysisForm, list[str]]:
    """A form that analyzes the model of a job on its data, and what must be typed or looked at again."""
    values, left_out = _inputs_like(job)
    asked = job.run if job.kind is JobKind.ANALYSIS else {}
    if not asked:
        values["name"] = f"analysis of {job.name}"[:NAME_LENGTH]
    max_length = asked.get("max_length") or job.config.get("max_length")
    values |= {"max_length": str(max_length or ""), "rows": str(asked.get("rows") or "")}
    return AnalysisForm(values, reports=tuple(asked.get("reports") or ())), left_out


def _inputs_like(job: Job) -> tuple[dict[str, str], list[str]]:
    """The fields that every form has, and what is left out of them."""
    values = {name: str(getattr(job, name)) for name in _PLAIN} | {"device_memory": str(job.memory.get("asked", ""))}
    values |= {name: one["uri"] for name, one in job.sources.items() if shown(one["uri"]) == one["uri"]}
    values |= {COLUMN + role: name for role, name in _columns_of(_first_data(job)).items()}
    values["labels"] = " ".join(f"{key}:{value}" for key, value in job.labels.items() if not SEPARATORS.search(value))
    return values, _left_out(job)


def _wish_of(run: Mapping[str, Any]) -> dict[str, str]:
    """The goal with its number, or the preset, where one was chosen."""
    if run.get("goal") is None:
        return {"preset": run["preset"]} if run.get("preset") in list(Preset) else {}
    goal, _, number = run["goal"].partition("=")
    return {"goal": goal, f"{GOAL}{goal}": number}


def _given_knobs(job: Job) -> dict[str, Any]:
    """The knobs that were posted; of a job of an earlier version, which kept them all, those that were changed."""
    given: dict[str, Any] = job.run.get("config", {})
    is_every_one = bool(given) and given == job.config
    return changed_knobs(job.spec["preset"], given) if is_every_one else given


def _columns_of(reference: Mapping[str, Any]) -> dict[str, str]:
    """The columns that are not called like their role."""
    return {role: name for role, name in (reference.get("columns") or {}).items() if name != role}


def _first_data(job: Job) -> Mapping[str, Any]:
    """The data whose columns are filled in."""
    return next(job.sources[name] for name in DATA if name in job.sources)


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


def _left_out(job: Job) -> list[str]:
    given = job.sources
    said = [
        f"The address of {name} had a password or a query, which no page repeats: type it again."
        for name, one in given.items()
        if shown(one["uri"]) != one["uri"]
    ]
    if any(one["uri"].startswith(HUB_PREFIX) for one in given.values()):
        said.append("A token for the model hub, where one is needed, must be typed again.")
    if any(SEPARATORS.search(value) for value in job.labels.values()):
        said.append("Labels with spaces or commas are not filled in; the API takes them.")
    if job.webhook is not None:
        said.append("Its webhook is not filled in.")
    if any(one.get("sha256") for one in given.values()):
        said.append("The digests that it expected of its inputs are not asked for again.")
    data = [one for name, one in given.items() if name in DATA]
    if any(_columns_of(one) != _columns_of(_first_data(job)) for one in data):
        said.append("Its data sets have different columns; those of the first are filled in for all.")
    return said
