"""Preparing sets: what is drawn, what must not leak, and what is derived from what."""

import gzip
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness import Place
from benchmarks.rows import LabelsRow, QuestionRow, Row, read_rows
from benchmarks.sets.catalog import phrases, questions, search
from benchmarks.sets.parts import by_group, held_out, sample

CONTEXT = "Ada wrote the first program. She was born in 1815 in London. Her father left. He was a poet. Bees hum."


def write(path: Path, rows: list[dict[str, object]], *, packed: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if packed else text)


def asked(index: int, context: str = CONTEXT) -> dict[str, object]:
    answers = {"text": ["London"], "answer_start": [context.index("London")]}
    return {
        "id": str(index),
        "question": f"Where {index}?",
        "context": context,
        "answers": answers,
        "title": f"t{index % 12}",
    }


@given(st.lists(st.integers(0, 9), max_size=60), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_group_falls_whole_into_one_part(rows, first, second):
    parts = by_group(rows, lambda row: row, (first, second))
    assert sorted(row for part in parts for row in part) == sorted(rows)
    groups = [set(part) for part in parts]
    assert not groups[0] & groups[1]
    assert not groups[0] & groups[2]
    assert not groups[1] & groups[2]


@given(st.lists(st.integers(), max_size=40), st.integers(1, 50))
def test_a_sample_is_of_the_size_asked_for_and_keeps_the_order(rows, size):
    drawn = sample(rows, size)
    assert len(drawn) == min(size, len(rows))
    left = iter(rows)
    assert all(row in left for row in drawn)


def test_what_is_held_out_is_not_trained_on():
    rows = [Row(str(index), "ab"[index % 2]) for index in range(200)]
    train, validation = held_out(rows, 10)
    assert (len(train), len(validation)) == (170, 10)
    assert sum(row.label == "a" for row in validation) == 5
    assert not set(train) & set(validation)


def test_articles_of_questions_are_in_one_part_and_long_contexts_in_none(tmp_path):
    rows = [asked(index) for index in range(48)] + [asked(index, f"London{' is large' * 100}") for index in range(12)]
    write(tmp_path / "SQuAD-v1.1/dev.jsonl.gz", rows, packed=True)
    write(tmp_path / "TyDiQA-GoldP-en/train.jsonl", [{**asked(99), "title": ""}])
    parts = questions(tmp_path)
    assert [len(parts.train), len(parts.validation), len(parts.test)] == [33, 8, 8]
    titles = [
        {int(row.question[6:-1]) % 12 for row in part} for part in (parts.train[:-1], parts.validation, parts.test)
    ]
    assert sum(map(len, titles)) == len(set().union(*titles)) == 12


def test_no_text_that_an_embedder_is_fitted_to_is_of_an_article_that_is_searched(tmp_path):
    rows = [asked(index, f"Context {index % 24} of London.") | {"title": f"t{index % 12}"} for index in range(48)]
    write(tmp_path / "SQuAD-v1.1/dev.jsonl.gz", rows, packed=True)
    pairs = [{"text": f"one {index}", "text_pair": "two", "label": 1.0} for index in range(9)]
    write(tmp_path / "STS-B/train.jsonl", pairs)
    write(tmp_path / "AG-News/train.jsonl", [{"text": "news", "label": "Sports"}])
    parts = search(tmp_path)
    fitted = [row.text for row in (*parts.train, *parts.validation)]
    assert len(fitted) == len(set(fitted)), "each text once"
    assert {"two", "news", "one 0"} <= set(fitted)
    assert len(parts.test) == 12, "a question for each paragraph of half of the articles"
    assert not {text for row in parts.test for text in (row.text, row.text_pair)} & set(fitted)


def test_a_set_is_written_once_in_three_parts_and_cut_for_a_trial_run(tmp_path):
    write(tmp_path / "SQuAD-v1.1/dev.jsonl", [asked(index) for index in range(24)])
    write(tmp_path / "TyDiQA-GoldP-en/train.jsonl", [])
    for name, most, sizes in (("whole", None, [16, 4, 4]), ("cut", 3, [3, 3, 3])):
        place = Place(tmp_path, tmp_path / name, rows=most)
        place.prepare("squad")
        files = [place.sets / "squad" / f"{part}.jsonl" for part in ("train", "validation", "test")]
        rows = [read_rows(file, QuestionRow) for file in files]
        assert [len(part) for part in rows] == sizes
        assert all(row.answers == asked(0)["answers"] for row in rows[2])
        written = files[0].stat().st_mtime_ns
        place.prepare("squad")
        assert files[0].stat().st_mtime_ns == written


def test_the_labels_of_a_sentence_are_its_kinds_of_phrases(tmp_path: Path) -> None:
    tags = [["B-NP", "B-PP", "B-NP", "I-NP", "B-PRT"], ["B-NP", "O"]]
    rows = [{"tokens": [f"w{index}", *"abcd"][: len(found)], "tags": found} for index in range(30) for found in tags]
    for part in ("train", "test"):
        write(tmp_path / "CoNLL-2000-chunk" / f"{part}.jsonl", rows)
    parts = phrases(tmp_path)
    assert set(map(len, (parts.train, parts.validation))) == {51, 9}
    assert {(row.text.partition(" ")[2], *row.labels) for row in parts.test} == {("a b c d", "PP", "PRT"), ("a",)}
    assert all(isinstance(row, LabelsRow) for row in parts.validation)
