"""Answer sheets for tests: a path of models whose changed answers grow, and what is true of its rows."""

from typing import Any

from axformer.wire.answer_sheet import Answer, AnswerSheet, ChangedRow, PathAnswers

CLASSES = ["negative", "positive"]
CHANGED = (3, 16, 30, 70)
"""Answers that each model of the path changes; those of the first are certified without a label, those of the last never."""
TIMES = (1.2, 1.6, 2.0, 3.0)


def sheet_of_path(forms: tuple[str, ...] = ("compact",), rows: int = 1000, **changes: Any) -> AnswerSheet:
    """A sheet of a model with two classes, whose path is within 2 points without a label up to its first model."""
    changed = [
        ChangedRow(id=f"{37 * place:08x}", place=place, inputs={"text": f"text {place}"}, before=place % 2)
        for place in range(max(CHANGED))
    ]
    models = [
        PathAnswers(
            seq=2 * index, form=form, times=times, answers={row.place: 1 - row.before for row in changed[:count]}
        )
        for form in forms
        for index, (count, times) in enumerate(zip(CHANGED, TIMES, strict=True), 1)
    ]
    plain: dict[str, Any] = {"task": "classification", "metric": "accuracy", "test": "exact", "classes": CLASSES}
    plain |= {"points": 2.0, "rows": rows, "unlabelled": rows, "changed": changed, "models": models}
    return AnswerSheet(**plain | changes)


def truth_of(sheet: AnswerSheet) -> dict[str, Answer]:
    """Labels by which the new answer is right in every other row."""
    return {row.id: row.before if row.place % 4 < 2 else 1 - row.before for row in sheet.changed}  # type: ignore[operator]
