"""The result of a job for its page: the forms that can be deployed, and the files of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from axformer.forms.kinds import KINDS
from axformer.reporting.deploy_table import TITLES, deployables
from store.tables.files import Artifact

ARCHIVE, REPORT, CARD, ANALYSIS = "artifact.tar.gz", "report.html", "README.md", "analysis.html"
"""The archive of all other files, and what people read."""
_ABOUT = "About the result"


@dataclass(frozen=True)
class Bundle:
    """Files that belong together: those of a form, or those about the result."""

    title: str
    files: Sequence[Artifact]
    name: str = ""
    """The form; empty for files about the result."""
    directory: str = ""
    """The form's directory; empty for files about the result."""

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True)
class Bundles:
    """All files of a job."""

    forms: Sequence[Bundle]
    """One for each form, in the order of reports."""
    about: Bundle
    archive: Artifact | None
    card: Artifact | None
    has_report: bool
    has_analysis: bool

    @property
    def groups(self) -> Sequence[Bundle]:
        """The bundles that hold files."""
        return [bundle for bundle in (*self.forms, self.about) if bundle.files]


def bundles_of(files: Sequence[Artifact]) -> Bundles:
    """The files of a job by form."""
    of_forms = [
        Bundle(TITLES.get(kind.name, kind.name), held, kind.name, kind.directory)
        for kind in KINDS.values()
        if (held := [file for file in files if file.name.startswith(f"{kind.directory}/")])
    ]
    taken = {file.name for bundle in of_forms for file in bundle.files}
    named = {file.name: file for file in files}
    about = Bundle(_ABOUT, [file for file in files if file.name not in taken])
    return Bundles(of_forms, about, named.get(ARCHIVE), named.get(CARD), REPORT in named, ANALYSIS in named)


@dataclass(frozen=True)
class ResultRow:
    """One line of the table of forms, as text."""

    title: str
    directory: str | None
    metric: str
    change: str
    milliseconds: str
    times: str
    per_second: str
    megabytes: str
    is_best: bool


@dataclass(frozen=True)
class Deploy:
    """The table of forms, and which to take."""

    metric: str
    rows: Sequence[ResultRow]
    sentence: str
    advised: Bundle | None
    """The files of the advised form."""


def deploy_of(summary: Mapping[str, Any] | None, bundles: Bundles) -> Deploy | None:
    """The table of a finished job; None before the end, and for a job of an earlier version."""
    found = deployables(summary or {})
    if found is None:
        return None
    best, text = found.best, found.table()
    rows = [
        ResultRow(title, one.directory, metric, change, milliseconds, times, per_second, megabytes, is_best=one is best)
        for one, (title, metric, change, milliseconds, times, per_second, megabytes) in zip(
            found.rows, text.rows, strict=True
        )
    ]
    advised = None if best is None else next((form for form in bundles.forms if form.name == best.name), None)
    return Deploy(text.head[1], rows, found.sentence, advised)
