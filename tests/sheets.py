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


def small_sheet(task: str) -> AnswerSheet:
    """A sheet of 300 rows whose three rows differ, of a kind of answers each."""
    inputs, before, after, classes = _OF_TASKS[task]
    rows = [
        ChangedRow(id=f"{place + 1:08x}", place=place, inputs=_numbered(inputs, place), before=before)
        for place in range(3)
    ]
    model = PathAnswers(seq=2, form="compact", times=2.0, answers={row.place: after for row in rows})
    numbers = {"test": "sampled", "variance": 2.0} if task == "regression" else {}
    return sheet_of_path(
        rows=300, task=_TASKS.get(task, task), classes=classes, changed=rows, models=[model], points=1.0, **numbers
    )


def _numbered(inputs: dict[str, Any], place: int) -> dict[str, Any]:
    return {name: f"{value} {place}" if isinstance(value, str) else value for name, value in inputs.items()}


_TASKS = {"pairs": "classification", "many": "classification"}
_OF_TASKS: dict[str, tuple[dict[str, Any], Answer, Answer, list[str]]] = {
    "pairs": (
        {"premise": "A man plays a guitar <on> a stage.", "hypothesis": "Nobody is on the stage."},
        2,
        1,
        ["entailment", "neutral", "contradiction"],
    ),
    "multiple_choice": (
        {"text": "She put the kettle on because", "choices": ["she wanted tea.", "the kettle was red.", "it rained."]},
        0,
        2,
        [],
    ),
    "reranking": (
        {"query": "who built the bridge", "passages": ["It is long.", "Eiffel built it.", "It rained."]},
        0,
        1,
        [],
    ),
    "token_classification": (
        {"tokens": ["Angela", "Merkel", "visited", "Paris", "in", "May"]},
        [1, 2, 0, 3, 0, 0],
        [1, 1, 0, 0, 0, 0],
        ["O", "B-PER", "I-PER", "B-LOC"],
    ),
    "multi_label_classification": (
        {"text": "The parcel came late and broken."},
        [1, 0, 0],
        [1, 1, 0],
        ["delivery", "quality", "price"],
    ),
    "question_answering": (
        {"question": "When was the bridge opened?", "context": "The bridge was opened in 1912, not <b>in 1913</b>."},
        "1912",
        "in 1913",
        [],
    ),
    "regression": (
        {"sentence1": "A man plays a guitar.", "sentence2": "Somebody makes music."},
        3.25,
        3.5,
        [],
    ),
    "many": (
        {"text": "Where is my new card? I have been waiting for two weeks and nobody answers."},
        1,
        2,
        [f"{kind} {number}" for kind in ("card", "transfer", "account", "exchange") for number in range(1, 12)],
    ),
}
