"""The page on which people label changed answers of a finished job: one text a screen, by keys or thumbs."""

from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, BackgroundTasks, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from api.deps import ReadingDep, ResourcesDep, SessionDep, StorageDep
from api.errors import NoSuchObjectError
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.deps import FormDep, PagesDep, Visitor, WriterDep
from api.pages.job_parts import standings_of
from api.pages.label_cards import card_of, label_in
from api.services import labelling
from api.services.labelling import Labelling
from axformer.wire.answer_sheet import ChangedRow
from axformer.wire.labelling import LabelsCreate

router = APIRouter(prefix="/jobs/{job_id}/label")

AHEAD = 12
"""Texts that a page holds, so that nobody waits for the next one."""


@router.get("")
def show_label(
    job_id: str,
    visitor: WriterDep,
    session: ReadingDep,
    storage: StorageDep,
    pages: PagesDep,
    row: str | None = None,
    last: str | None = None,
    skip: str = "",
) -> Response:
    """The page.

    Args:
        row: a row that is asked first, because somebody wants to say otherwise.
        last: the row that was labelled or skipped last, which can be undone.
        skip: rows that this person has skipped, with spaces between.
    """
    found = labelling.find(session, storage, visitor.caller.team_id, job_id)
    mine = [one.row_id for one in found.given if one.key_id == visitor.caller.key_id]
    told = {"last": last, "mine": mine, "disagreed": labelling.needed_of(found).disagreements}
    return pages.answer("label.html", **_values(found, visitor, skip.split(), row) | told)


@router.post("")
def send_label(
    job_id: str,
    request: Request,
    visitor: WriterDep,
    sent: FormDep,
    session: SessionDep,
    storage: StorageDep,
    resources: ResourcesDep,
    pages: PagesDep,
    after_commit: BackgroundTasks,
) -> Response:
    """Take a label, or the wish to skip a row or to undo one; answer a script with what is next, and others with the page."""
    found = labelling.find(session, storage, visitor.caller.team_id, job_id)
    row, do = _row(found, str(sent.get("row", ""))), str(sent.get("do", ""))
    skipped = str(sent.get("skip", "")).split()
    is_skipped = do == "skip" or (do == "undo" and row.id in skipped)
    if not is_skipped:
        label = None if do == "undo" else label_in(found.sheet, row, sent)
        body = LabelsCreate.model_validate({"data": [{"id": row.id, "label": label}]})
        found, has_new_export = labelling.give(session, storage, resources.settings, visitor.caller, job_id, body)
        if has_new_export:
            after_commit.add_task(resources.wakeup.wake)
    skipped = [*skipped, row.id] if do == "skip" else [one for one in skipped if one != row.id]
    if "application/json" in request.headers.get("accept", ""):
        return _next(pages, found, visitor, skipped, str(sent.get("have", "")).split())
    query = {"skip": " ".join(skipped), "row" if do == "undo" else "last": row.id}
    return RedirectResponse(f"/jobs/{job_id}/label?{urlencode(query)}", 303, headers=PAGE_HEADERS)


def _row(found: Labelling, row_id: str) -> ChangedRow:
    row = next((row for row in found.sheet.changed if row.id == row_id), None)
    if row is None:
        raise NoSuchObjectError(f"row '{row_id}' is none whose answer changed in this result; load the page again")
    return row


def _values(found: Labelling, visitor: Visitor, skipped: Sequence[str], first: str | None = None) -> dict[str, Any]:
    """What every part of the page shows, with the next cards of a person."""
    rows = [row for row in found.needed(visitor.form_token) if row.id not in skipped and row.id != first]
    if first is not None:
        rows.insert(0, _row(found, first))
    cards = [card_of(found.sheet, row) for row in rows[:AHEAD]]
    shown = {"cards": cards, "first": first, "skipped": " ".join(skipped), "is_ahead": False}
    return {"visitor": visitor, "job": found.job, "read": found.read, "forms": standings_of(found.read)} | shown


def _next(pages: Pages, found: Labelling, visitor: Visitor, skipped: Sequence[str], held: Collection[str]) -> Response:
    """What a script shows next; only the cards that it does not hold."""
    values = _values(found, visitor, skipped)
    new = [card for card in values["cards"] if card.id not in held]
    return JSONResponse(
        {
            "progress": pages.text("label/progress.html", **values),
            "rows": [card.id for card in values["cards"]],
            "cards": pages.text("label/cards.html", **values | {"cards": new, "is_ahead": True}),
        }
    )
