"""The form for a new job: its values, the request body that they make, and errors by field."""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData

from api.errors import ApiError
from api.services.inputs.tasks import TASKS
from axformer.config import KNOBS, parse_knob
from axformer.data.columns import Columns
from axformer.errors import ConfigError, reason_of
from axformer.intake.names import KNOWN_NAMES
from axformer.wire.analyses import PARTS, AnalysisCreate
from axformer.wire.analysis import ReportName
from axformer.wire.devices import Device
from axformer.wire.finetuning import FinetuneSettings
from axformer.wire.heads import parse_head
from axformer.wire.jobs import JobCreate
from axformer.wire.run import DATA, usual_forms
from store.settings import Settings

NONCE_FIELD = "nonce"
"""A hidden field that becomes the idempotency key, so that a form that is sent twice creates one job."""
_NONCE_BYTES = 12
"""Enough that two forms of a team never share one; it is not a secret."""
_MOST_LETTERS = 64


def form_nonce() -> str:
    """A nonce for a new form."""
    return secrets.token_hex(_NONCE_BYTES)


def key_of(nonce: str) -> str | None:
    """The idempotency key of a form; None if the nonce is not one of ours."""
    return f"page-{nonce}" if nonce.isascii() and nonce.isalnum() and len(nonce) <= _MOST_LETTERS else None


KNOB, COLUMN, FINETUNE, WEBHOOK, GOAL = "knob.", "column.", "finetune.", "webhook.", "goal."
"""Prefixes of the fields for knobs, columns, training, the webhook and the numbers of goals."""
REFERENCES = ("checkpoint", *DATA)
LISTS = frozenset({"explicit_order", "budgets"})
"""Knobs that are lists; written with commas."""
INPUT_CHOICES: Mapping[str, Any] = {
    "roles": list(Columns.model_fields),
    "tasks": {task.data: task.columns for task in TASKS},
    "checkpoint_names": KNOWN_NAMES,
    "devices": list(Device),
}
"""What the forms for jobs and analyses offer for their inputs."""
SEPARATORS = re.compile(r"[\s,]+")

B = TypeVar("B", bound=BaseModel)


@dataclass
class JobForm:
    """A form as it was filled in."""

    values: Mapping[str, str] = field(default_factory=dict)
    forms: tuple[str, ...] = tuple(usual_forms())
    """Ticked forms of the result."""
    events: tuple[str, ...] | None = None
    """Ticked events of the webhook; None if nothing was sent yet."""
    nonce: str = field(default_factory=form_nonce)
    """Ensures that a form that is sent twice creates one job."""
    errors: list[tuple[str, str]] = field(default_factory=list)
    """Fields with their errors."""

    @classmethod
    def read(cls, sent: FormData) -> "JobForm":
        """The form as it was sent."""
        values = {name: str(value).strip() for name, value in sent.items()}
        forms, events = (tuple(map(str, sent.getlist(name))) for name in ("forms", f"{WEBHOOK}events"))
        return cls(values, forms, events, values.get(NONCE_FIELD, ""))

    def value(self, name: str, default: str = "") -> str:
        """The text of a field, or the default if it was not sent."""
        return self.values.get(name, default)

    def has_error(self, name: str) -> bool:
        """Whether a field has an error."""
        return any(field == name for field, _ in self.errors)

    def has_any(self, prefix: str) -> bool:
        """Whether any field with this prefix is filled in; its part of the form is then shown open."""
        return any(value for name, value in self.values.items() if name.startswith(prefix))

    def body(self) -> JobCreate | None:
        """The request body; None if a field is invalid, in which case there are errors."""
        try:
            return self._valid(JobCreate, self._as_posted())
        except ConfigError as error:
            self.errors.append(("head", str(error)))
            return None

    def _valid(self, kind: type[B], body: dict[str, Any]) -> B | None:
        try:
            return kind.model_validate(body)
        except ValidationError as error:
            for item in error.errors():
                self.errors.append((field_of(item["loc"]), f"{words_of(item['loc'])}: {reason_of(item)}"))
            return None

    def refuse(self, error: ApiError) -> None:
        """Add an error of the service to the form."""
        if not error.errors:
            self.errors.append(("", error.detail))
        for one in error.errors:
            path = (one.pointer or "").removeprefix("#/").split("/")
            self.errors.append((field_of(path), one.detail))

    def _inputs(self, parts: Sequence[str], numbers: Sequence[str]) -> dict[str, Any]:
        """What every form asks for: the name, where the job runs, and what it reads."""
        body: dict[str, Any] = {"name": self.value("name"), "labels": labels_of(self.value("labels"))}
        body |= {name: self.value(name) for name in ("device", "hub_token", "pooling") if self.value(name)}
        body |= {name: number_of(self.value(name)) for name in numbers if self.value(name)}
        columns = {role: self.value(COLUMN + role) for role in Columns.model_fields if self.value(COLUMN + role)}
        for part in parts:
            if self.value(part):
                body[part] = {"uri": self.value(part)}
                if columns and part not in ("checkpoint", "against"):
                    body[part]["columns"] = columns
        return body

    def _as_posted(self) -> dict[str, Any]:
        body = self._inputs(REFERENCES, ("priority", "device_memory")) | self._wish()
        body["config"] = {name: self._knob(name) for name in KNOBS if self.value(KNOB + name)}
        if self.forms:
            body["forms"] = list(self.forms)
        if self.value("head"):
            body["head"] = parse_head(self.value("head")).model_dump(mode="json")
        settings = {name: self.value(FINETUNE + name) for name in FinetuneSettings.model_fields}
        if any(settings.values()):
            body["finetune"] = {name: value for name, value in settings.items() if value}
        if self.value(f"{WEBHOOK}url"):
            body["webhook"] = {"url": self.value(f"{WEBHOOK}url"), "events": list(self.events or ())}
        return body

    def _wish(self) -> dict[str, str]:
        """The goal with its number, or the preset where none is chosen."""
        goal, preset = self.value("goal"), self.value("preset")
        if not goal:
            return {"preset": preset} if preset else {}
        number = self.value(f"{GOAL}{goal}")
        return {"goal": f"{goal}={number}" if number else goal}

    def _knob(self, name: str) -> Any:
        text = self.value(KNOB + name)
        return [part for part in SEPARATORS.split(text) if part] if name in LISTS else parse_knob(f"{name}={text}")[1]


def number_of(text: str) -> int | str:
    """A whole number; other text stays as it is, and is refused with the rest."""
    return int(text) if re.fullmatch(r"-?\d{1,15}", text) else text


def labels_of(text: str) -> dict[str, str]:
    """Labels written ``key:value``."""
    labels = (label.partition(":") for label in SEPARATORS.split(text) if label)
    return {key: value for key, _, value in labels}


def field_of(path: Any) -> str:
    """The field of the form for a place in the body."""
    first, *rest = [str(part) for part in path] or [""]
    if first == "config":
        return KNOB + rest[0] if rest else ""
    if first in REFERENCES and "columns" in rest:
        return COLUMN + rest[-1]
    if first == "finetune":
        return FINETUNE + (rest[0] if rest else "epochs")
    if first == "webhook":
        return WEBHOOK + (rest[0] if rest else "url")
    return first


def words_of(path: Any) -> str:
    """A place in the body for people."""
    return " ".join(str(part) for part in path if part != "uri")


_FOLDER = "demo"
_PARTS = {"checkpoint": "checkpoint", "validation": "validation.jsonl", "test": "test.jsonl"}


def demo_form(settings: Settings) -> JobForm | None:
    """The form; None where the demo has not been made, or its directory is not opened for ``file://``."""
    folder = Path(settings.var_dir).resolve() / _FOLDER
    is_open = any(folder.is_relative_to(root.resolve()) for root in settings.file_roots)
    if not is_open or not all((folder / part).exists() for part in _PARTS.values()):
        return None
    values = {name: f"file://{folder / part}" for name, part in _PARTS.items()}
    return JobForm(values | {"name": "demo: movie reviews", "goal": "within-points", "goal.within-points": "4"})


ALL: tuple[str, ...] = get_args(ReportName)


@dataclass
class AnalysisForm(JobForm):
    """A form as it was filled in."""

    reports: tuple[str, ...] = ()
    """Ticked reports; none stands for all that the inputs allow."""

    @classmethod
    def read(cls, sent: FormData) -> "AnalysisForm":
        """The form as it was sent."""
        values = {name: str(value).strip() for name, value in sent.items()}
        return cls(values, nonce=values.get(NONCE_FIELD, ""), reports=tuple(map(str, sent.getlist("reports"))))

    def asked(self) -> AnalysisCreate | None:
        """The request body; None if a field is invalid, in which case there are errors."""
        reports = {"reports": list(self.reports)} if self.reports else {}
        return self._valid(
            AnalysisCreate, self._inputs(PARTS, ("rows", "max_length", "priority", "device_memory")) | reports
        )
