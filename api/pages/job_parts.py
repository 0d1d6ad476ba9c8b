"""The values for the templates of a job's page, with its result: the forms that can be deployed, and the files of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from api.errors import WrongStateError
from api.resources import Resources
from api.services import artifacts, labelling, queue
from api.services.paths import points_of
from api.views.jobs import job_read
from axformer.forms.kinds import KINDS
from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import TITLES, Deployable
from axformer.scores.path_costs import PathModel, told_beyond
from axformer.wire.labelling import FormStandingRead, LabellingRead
from store.repositories.events import events_after
from store.repositories.keys import Caller
from store.repositories.labels import labelled_of
from store.repositories.trace_views import trace_totals
from store.states import TERMINAL, TRANSITIONS, JobState
from store.tables.files import Artifact
from store.tables.jobs import Job

EVENTS_SHOWN = 200
"""Most events that are shown; an uninterrupted job writes about ten."""


def job_values(session: Session, resources: Resources, caller: Caller, job: Job) -> dict[str, Any]:
    """All values except the pictures."""
    is_queued = job.state is JobState.QUEUED
    place = queue.place_of(resources.queue_views.get(), caller, job) if is_queued else None
    shown = job_read(job, place)
    events = events_after(session, job.id, limit=EVENTS_SHOWN)
    files = artifacts.list_artifacts(session, job.team_id, job.id) if job.state in TERMINAL else []
    bundles = bundles_of(files)
    return {
        "job": shown,
        "totals": trace_totals(session, job.id),
        "has_ended": job.state in TERMINAL,
        "files": files,
        "bundles": bundles,
        "deploy": deploy_of(job.summary, bundles),
        "beyond": _beyond(job),
        "events": list(reversed(events.items)),
        "actions": actions(job),
    }


def label_values(session: Session, resources: Resources, job: Job) -> dict[str, Any]:
    """What is certified by labels, and what more they would certify; of an export by those of the original job."""
    try:
        read = labelling.labelling_of(session, resources.storage, job).read
    except WrongStateError:  # it has no answers to label, or not yet
        read = None
    return {
        "standing": read,
        "forms": [] if read is None else standings_of(read),
        "certified": labelling.certified_from_labels(session, job),
    }


def standings_of(read: LabellingRead) -> list[tuple[str, FormStandingRead]]:
    """How far forms are certified, those that are deployed first, each with its name for people; those alike once, and
    without a name where all are."""
    found: list[tuple[list[str], FormStandingRead]] = []
    for form in reversed(read.forms):
        title = TITLES.get(form.form, form.form)
        same = next((names for names, other in found if other == form.model_copy(update={"form": other.form})), None)
        if same is None:
            found.append(([title], form))
        else:
            same.append(title)
    return [(" and ".join(names) if len(found) > 1 else "", form) for names, form in found]


def _beyond(job: Job) -> tuple[str, PathModel] | None:
    """What else the job's path offers; None also for a path of an earlier version, which tells less of its models, and where
    labels have certified that model, of which more is told."""
    try:
        points = points_of(job)
    except ValidationError:
        return None
    certificate = (job.summary or {}).get("certificate")
    allowed = None if certificate is None else certificate["points"]
    found, known = told_beyond(points, allowed, is_certified=certificate is not None), labelled_of(job)
    by_labels = {seq for form in known.forms for seq in form.certified} if known else set()
    return None if found is None or found[1].point.seq in by_labels else found


def actions(job: Job) -> list[str]:
    """What can be done with a job now."""
    following = TRANSITIONS[job.state]
    able = {
        "pause": bool(following & {JobState.PAUSING, JobState.PAUSED}),
        "resume": job.state is JobState.PAUSED,
        "retry": job.state in (JobState.FAILED, JobState.CANCELLED),
        "cancel": bool(following & {JobState.CANCELLING, JobState.CANCELLED}),
        "delete": job.state in TERMINAL,
    }
    return [name for name, is_able in able.items() if is_able]


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
    place: str = ""
    """What is loaded: the directory, or a file in it."""

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
    named = {file.name: file for file in files}
    of_forms = [
        Bundle(TITLES.get(kind.name, kind.name), [named[name] for name in held], kind.name, kind.directory, kind.place)
        for kind in KINDS.values()
        if (held := kind.of(named))
    ]
    taken = {file.name for bundle in of_forms for file in bundle.files}
    about = Bundle(_ABOUT, [file for file in files if file.name not in taken])
    return Bundles(of_forms, about, named.get(ARCHIVE), named.get(CARD), REPORT in named, ANALYSIS in named)


@dataclass(frozen=True)
class Deploy:
    """The table of forms, and which to take."""

    metric: str
    rows: Sequence[tuple[Deployable, Sequence[str]]]
    """Each form with its cells, as :meth:`axformer.reporting.deployable.Deployables.table` has them."""
    best: Deployable | None
    sentence: str
    advised: Bundle | None
    """The files of the advised form."""


def deploy_of(summary: Mapping[str, Any] | None, bundles: Bundles) -> Deploy | None:
    """The table of a finished job; None before the end, and for a job of an earlier version."""
    found = deployables(summary or {})
    if found is None:
        return None
    best = found.best
    is_here = best is not None and best.directory is not None
    advised = next((form for form in bundles.forms if best is not None and is_here and form.name == best.name), None)
    rows = list(zip(found.rows, found.table().rows, strict=True))
    return Deploy(found.what, rows, best, found.sentence, advised)
