"""The page on which people label changed answers of a finished job: one text a screen, by keys or thumbs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, BackgroundTasks, Request
from starlette.datastructures import FormData
from starlette.responses import JSONResponse, RedirectResponse, Response

from api.deps import ReadingDep, ResourcesDep, SessionDep, StorageDep
from api.errors import InvalidInputError, NoSuchObjectError
from api.pages.context import PAGE_HEADERS, Pages
from api.pages.deps import FormDep, PagesDep, Visitor, WriterDep
from api.pages.job_parts import standings_of
from api.services import labelling
from api.services.labelling import Labelling
from axformer.scores.labelling import asked_words, choices_of, range_of
from axformer.wire.answer_sheet import CHOSEN_FROM, AnswerSheet, ChangedRow
from axformer.wire.labelling import LabelsCreate

router = APIRouter(prefix="/jobs/{job_id}/label")

AHEAD = 12
"""Texts that a page holds, so that nobody waits for the next one."""
KEYS = "123456789abcdefghijklmnopqrtvwxyz"
"""The keys of classes by their index, without S, which skips, and U, which undoes."""
_SHORT = 28
"""Most letters of a choice that stands beside others."""


@dataclass(frozen=True)
class Card:
    """A row as it is asked for: its inputs, and a question with large choices, blind to what any model said."""

    id: str
    kind: Literal["one", "several", "words", "number"]
    """One class or choice, all classes that apply, a class for each of some words, or a number."""
    parts: Sequence[tuple[str, str | list[str]]]
    """Its inputs, each a text or words, with the name of the column; the name is empty where there is only one."""
    choices: Sequence[tuple[str, str]]
    """Each with its key, which may be empty."""
    asked: Sequence[int] = ()
    """The words that are asked for."""
    range: tuple[float, float] = (0.0, 0.0)
    """Of a number, for who has to think of one."""

    @property
    def is_long(self) -> bool:
        """Whether a choice needs a line of its own."""
        return any(len(name) > _SHORT for _, name in self.choices)


def card_of(sheet: AnswerSheet, row: ChangedRow) -> Card:
    """The card of a row."""
    names = choices_of(sheet, row)
    shown = {name: value for name, value in row.inputs.items() if sheet.classes or name not in CHOSEN_FROM}
    parts = [(name if len(shown) > 1 else "", value) for name, value in shown.items()]
    if isinstance(row.before, float):
        return Card(row.id, "number", parts, [], range=range_of(sheet))
    choices = [(KEYS[index : index + 1], name) for index, name in enumerate(names)]
    if not isinstance(row.before, list):
        return Card(row.id, "one", parts, choices)
    if sheet.task == "multi_label_classification":
        return Card(row.id, "several", parts, choices)
    return Card(row.id, "words", parts, choices, asked_words(sheet, row))


def label_in(sheet: AnswerSheet, row: ChangedRow, sent: FormData) -> int | str | list[int]:
    """The label that a card has sent back, a number as text; the words that it did not ask for have the untouched model's tags.

    Raises:
        InvalidInputError: nothing was chosen.
    """
    card = card_of(sheet, row)
    try:
        if card.kind == "several":
            return [int(str(one)) for one in sent.getlist("label")]
        if card.kind == "number":
            return str(sent["label"])
        if card.kind == "one":
            index = int(str(sent["label"]))
            return dict(enumerate(choices_of(sheet, row)))[index] if isinstance(row.before, str) else index
        tags = list(row.before) if isinstance(row.before, list) else []
        for place in card.asked:
            tags[place] = int(str(sent[f"word.{place}"]))
        return tags
    except (LookupError, ValueError):
        raise InvalidInputError("nothing was chosen, or not for every word; go back and choose") from None


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
