"""The form for an analysis: its values, the request body that they make, and errors by field."""

from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError
from starlette.datastructures import FormData

from api.pages.job_form import COLUMN, NONCE_FIELD, JobForm, field_of, labels_of, number_of, words_of
from axformer.data.columns import Columns
from axformer.errors import reason_of
from axformer.wire.analyses import PARTS, AnalysisCreate
from axformer.wire.analysis import ReportName

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
        try:
            return AnalysisCreate.model_validate(self._asked())
        except ValidationError as error:
            self.errors += [
                (field_of(one["loc"]), f"{words_of(one['loc'])}: {reason_of(one)}") for one in error.errors()
            ]
            return None

    def _asked(self) -> dict[str, Any]:
        body: dict[str, Any] = {"name": self.value("name"), "labels": labels_of(self.value("labels"))}
        body |= {name: self.value(name) for name in ("device", "hub_token") if self.value(name)}
        numbers = ("rows", "max_length", "priority")
        body |= {name: number_of(self.value(name)) for name in numbers if self.value(name)}
        columns = {role: self.value(COLUMN + role) for role in Columns.model_fields if self.value(COLUMN + role)}
        for part in PARTS:
            if self.value(part) or part in ("checkpoint", "validation"):
                body[part] = {"uri": self.value(part)}
                if columns and part in ("validation", "train"):
                    body[part]["columns"] = columns
        return body | ({"reports": list(self.reports)} if self.reports else {})
