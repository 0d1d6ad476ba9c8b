"""Look at all inputs of a job before it is posted: what they hold, and what a worker would stop at."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from api.errors import NoSuchObjectError
from api.services.inputs.checkpoint import CheckpointModel, look_at_checkpoint
from api.services.inputs.contents import Contents, UnreadableError, found_by, found_in
from api.services.inputs.data import look_at_data
from axformer.config.common import BY_ROWS
from axformer.scores.planning import (
    POINT,
    USUAL_POINTS,
    USUAL_RATE,
    few_rows_told,
    fewest_rows,
    free_of_labels_told,
    smallest_margin,
)
from axformer.wire.heads import NewHead
from axformer.wire.jobs import JobCreate
from axformer.wire.run import DATA, WITHOUT_LABELS
from store.errors import ReferenceFormError
from store.session import Sessions
from store.settings import Settings
from store.storage.storage import Storage

_ELSEWHERE = "is read by a worker, not here."
TITLES = {"checkpoint": "Checkpoint", **DATA, "points": "Certificate"}
"""What is looked at, as people call it: the references of a job, and what its rows can certify."""


@dataclass(frozen=True)
class Seen:
    """One input."""

    part: str
    """A name of :data:`TITLES`."""
    name: str | None
    """The file's own name; None if it lies elsewhere."""
    words: str
    """What it holds, or why a worker would stop at it."""
    is_wrong: bool = False

    @property
    def title(self) -> str:
        """What it is called."""
        return TITLES[self.part]


def look_at_inputs(
    sessions: Sessions, storage: Storage, settings: Settings, team_id: str, body: JobCreate, config: Mapping[str, Any]
) -> Sequence[Seen]:
    """Everything that can be seen here of the inputs of a job with these knobs; nothing is written."""
    contents = Contents(found_by(sessions, team_id), storage, settings)
    seen, model = _checkpoint(contents, body.checkpoint.uri, body.head)
    found, rows = [seen], dict[str, int | None]()
    for part, source in body.data().items():
        columns = source.columns.model_dump() if source.columns is not None else {}
        seen, rows[part] = _data(contents, part, source.uri, columns, model)
        found.append(seen)
    if model is not None and model.is_share_right:
        found += _points(rows, config)
    return found


def _points(counts: Mapping[str, int | None], config: Mapping[str, Any]) -> list[Seen]:
    """What the rows of each data set can certify, if that is less than was asked for or takes labels."""
    rows, points, share = counts.get("validation"), config.get("within_points"), config.get("confirm")
    if "unlabelled" in counts:
        return _without_labels(counts, points, share)
    if rows is None or not points or not share:
        return []
    confirming = int(rows * share)
    if points == BY_ROWS:
        margin = smallest_margin(confirming, USUAL_RATE, USUAL_RATE)
        return [
            Seen("points", None, f"{confirming:,} confirming rows are likely to certify {margin / POINT:.3g} points.")
        ]
    told, fewest = few_rows_told(confirming, points, share), fewest_rows(points * POINT)
    is_known = fewest is None or confirming < fewest
    return [] if told is None else [Seen("points", None, f"{told}.", is_wrong=is_known)]


def _without_labels(counts: Mapping[str, int | None], points: Any, share: float | None) -> list[Seen]:
    """What unlabelled rows certify, with the part of the validation rows that confirms. At most half of them calibrate, none
    where other data does."""
    free, labelled = counts["unlabelled"], counts.get("validation", 0)
    if free is None or labelled is None:
        return []
    calibrating = 0 if "calibrate" in counts else free // 2
    rows = free - calibrating + int(labelled * (share or 0))
    likely = smallest_margin(rows, USUAL_RATE, USUAL_RATE) / POINT
    told, can_certify = free_of_labels_told(rows, likely if points == BY_ROWS else points or USUAL_POINTS)
    told = f"at least {rows:,} rows confirm: {told}." if can_certify else f"{told}."
    return [Seen("points", None, told, is_wrong=points is not None and not can_certify)]


def names_of(
    session: Session, storage: Storage, settings: Settings, team_id: str, uris: Mapping[str, str]
) -> dict[str, str]:
    """The files' own names, by part, of the references that lead to uploads of the team or to files of this machine."""
    contents = Contents(found_in(session, team_id), storage, settings)
    found: dict[str, str] = {}
    for part, uri in uris.items():
        with suppress(ReferenceFormError, NoSuchObjectError):  # a form holds whatever was typed
            name = contents.name(uri, is_checkpoint=part == "checkpoint")
            if name:
                found[part] = name
    return found


def _checkpoint(contents: Contents, uri: str, head: NewHead | None) -> tuple[Seen, CheckpointModel | None]:
    name = contents.name(uri, is_checkpoint=True)
    if name is None:
        return Seen("checkpoint", None, _ELSEWHERE), None
    try:
        model = look_at_checkpoint(contents, uri, head)
    except UnreadableError as error:
        return Seen("checkpoint", name, str(error), is_wrong=True), None
    return Seen("checkpoint", name, f"{model.words}."), model


def _data(
    contents: Contents, part: str, uri: str, columns: Mapping[str, Any], model: CheckpointModel | None
) -> tuple[Seen, int | None]:
    """What is seen of a data file, and its rows."""
    name = contents.name(uri, is_checkpoint=False)
    if name is None:
        return Seen(part, None, _ELSEWHERE), None
    try:
        has_labels = part not in WITHOUT_LABELS
        content = look_at_data(contents, uri, columns, model, has_labels=has_labels)
        return Seen(part, name, content.words), content.rows
    except UnreadableError as error:
        return Seen(part, name, str(error), is_wrong=True), None
