"""Two lists of answers are certified without any model."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import axformer
from axformer.cli.main import app
from axformer.errors import ConfigError, DataError
from axformer.gate import Certified, certify
from axformer.scores.paired_tests import ALPHA, exact_p_value


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@given(st.integers(20, 2000), st.integers(0, 30), st.integers(0, 9999), st.sampled_from([0.5, 1, 2, 5]))
@settings(deadline=None, max_examples=50)
def test_it_is_the_exact_test_of_all_labels_and_never_kinder_with_fewer(
    rows: int, changed: int, seed: int, points: float
) -> None:
    rng = np.random.default_rng(seed)
    old, changed = rng.integers(3, size=rows).tolist(), min(changed, rows)
    new = [(answer + 1) % 3 if row < changed else answer for row, answer in enumerate(old)]
    labels = rng.integers(3, size=rows).tolist()
    full = certify(old, new, labels, points).whole
    assert full.p_value == exact_p_value(full.gained, full.lost, rows, points / 100)
    some = [label if rng.random() < 0.5 else None for label in labels]
    assert certify(old, new, some, points).whole.p_value >= full.p_value
    while needed := certify(old, new, some, points).needed:
        some[needed[0]] = labels[needed[0]]
    assert certify(old, new, some, points).is_certified == full.is_certified


def test_groups_are_certified_together() -> None:
    old = [0] * 900
    new = [1 if row % 3 == 0 and row < 60 else 0 for row in range(900)]
    by = ["de" if row % 3 == 0 else "en" for row in range(900)]
    found = certify(old, new, None, 5, by)
    assert [group.group for group in found.groups] == ["de", "en"]
    alone = certify(old[1::3], new[1::3], None, 5).whole.p_value
    assert found.groups[1].p_value >= alone
    assert not found.groups[0].is_certified
    assert found.groups[1].is_certified
    assert not found.is_certified
    assert set(found.needed) <= {row for row in range(900) if old[row] != new[row]}
    assert axformer.certify(old, old, within_points=5).is_certified


def test_lists_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"have \[2, 3\] rows"):
        certify([1, 2, 3], [1, 2])
    with pytest.raises(ConfigError, match="within_points=0"):
        certify([1], [1], None, 0)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_files_of_every_kind_say_what_is_missing(tmp_path: Path, ending: str) -> None:
    rows = 400
    tables: list[dict[str, list[Any]]] = [
        {"id": list(range(rows)), "answer": [f"c{row % 3}" for row in range(rows)], "text": ["x"] * rows},
        {"id": list(range(rows)), "answer": [f"c{row % 3}" if row >= 9 else "c9" for row in range(rows)]},
    ]
    tables[1] = {name: values[::-1] for name, values in tables[1].items()}  # matched by their ids
    files = []
    for name, table in zip(("old", "new"), tables, strict=True):
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(pa.table(table), path)
        elif ending == "csv":
            head = ",".join(table)
            path.write_text(
                head + "\n" + "".join(",".join(map(str, row)) + "\n" for row in zip(*table.values(), strict=True))
            )
        else:
            lines(path, [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)])
        files.append(path)
    done = run("certify", "--answers", *files, "--within-points", 2, "--needed", tmp_path / "needed.jsonl")
    assert done.exit_code == 1, done.output
    assert "at most 9 labels decide" in done.output
    wanted = [json.loads(line) for line in (tmp_path / "needed.jsonl").read_text().splitlines()]
    assert len(wanted) == 9
    assert all("answer" not in one for one in wanted)
    labels = lines(tmp_path / "labels.jsonl", [{"id": one["id"], "label": "c9"} for one in wanted])
    summary = tmp_path / "summary.md"
    done = run(
        *("certify", "--answers", *files, "--within-points", 2, "--labels", labels, "--json", "--summary", summary)
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["whole"]["gained"] == 9
    assert told["whole"]["p_value"] <= ALPHA
    assert summary.read_text().startswith("- Certified: less than 2 points of accuracy lost")


def test_samples_that_were_logged_are_read_as_right_or_wrong(tmp_path: Path) -> None:
    files = [
        lines(
            tmp_path / f"samples_{name}.jsonl",
            [
                {
                    "doc_id": row,
                    "doc": {"q": "x"},
                    "target": "2",
                    "resps": [[[-1.0, False]]],
                    "acc": float(row % 2 or row < few),
                }
                for row in range(600)
            ],
        )
        for name, few in (("old", 8), ("new", 4))
    ]
    done = run("certify", "--answers", *files, "--within-points", 2)
    assert done.exit_code == 0, done.output
    assert "2 became wrong, 0 right" in done.output


@pytest.mark.parametrize(
    ("old", "new", "more", "reason"),
    [
        ([{"id": 1, "answer": 1}], [{"id": 2, "answer": 1}], [], "give the answers of both models to the same rows"),
        ([{"id": 1, "answer": 1}] * 2, [{"id": 1, "answer": 1}] * 2, [], "has 1 ids more than once"),
        ([{"answer": 1}], [{"answer": 1}], [], "has no column with the ids"),
        ([{"id": 1, "answer": 1}], [{"id": 1, "answer": 1}], ["--by", "language"], "has no column 'language'"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, old: list[dict[str, Any]], new: list[dict[str, Any]], more: list[str], reason: str
) -> None:
    files = lines(tmp_path / "old.jsonl", old), lines(tmp_path / "new.jsonl", new)
    done = run("certify", "--answers", *files, *more)
    assert done.exit_code == 2
    assert reason in done.stderr.replace("\n", " ")


def test_labels_that_are_written_otherwise_are_refused(tmp_path: Path) -> None:
    rows = [{"id": row, "answer": row % 2} for row in range(50)]
    files = lines(tmp_path / "old.jsonl", rows), lines(tmp_path / "new.jsonl", [{**one, "answer": 0} for one in rows])
    cases: list[tuple[list[dict[str, Any]], str]] = [
        ([{"id": 1, "label": "yes"}], "none of the labels, such as 'yes', is ever answered by a model"),
        ([{"id": 1, "label": 1}, {"id": 3, "label": "01"}], "the label '01' is written otherwise than the answer '1'"),
        ([{"id": 1, "label": 1}, {"id": 3, "label": "n/a"}], "leave a label out that nobody knows"),
        ([{"id": 99, "label": 1}], "has 1 ids that the answers have not"),
    ]
    for labels, reason in cases:
        done = run("certify", "--answers", *files, "--labels", lines(tmp_path / "labels.jsonl", labels))
        assert done.exit_code == 2
        assert reason in done.stderr.replace("\n", " ")


def certified(old: list[Any], new: list[Any], labels: list[Any]) -> Certified | str:
    """The verdict within 2 points, or what to do about labels that are refused."""
    try:
        return certify(old, new, labels, 2)
    except DataError as error:
        return str(error).rsplit("; ", 1)[1].split(" are, and")[0]


WRITINGS: dict[Any, list[Any]] = {
    "a": ["a ", "A", "\uff41"],
    "caf\u00e9": ["cafe\u0301", "CAF\u00c9"],
    "1": [1, 1.0, "1.0", "01", np.int64(1), np.float32(1.0), True],
    "2.5": [2.5, "2.50", np.float64(2.5)],
    "true": [True, "True", np.bool_(True)],
    ("a", "b"): [["a", "b"], ["b", "a"], ("A", "b")],
}
"""Answers, and how programs write them."""


@pytest.mark.parametrize(("answer", "written"), [(one, other) for one, others in WRITINGS.items() for other in others])
@pytest.mark.parametrize("rows", [200, 1000])
def test_a_label_that_is_written_otherwise_is_read_alike_or_refused_and_never_wrong_for_both(
    answer: Any, written: Any, rows: int
) -> None:
    lost = rows // 10
    old, new, plain = [answer] * rows, ["other"] * lost + [answer] * (rows - lost), [answer] * rows
    wanted = certify(old, new, plain, 2)
    assert not wanted.is_certified
    assert certified(old, new, [written] * rows) in (wanted, "write labels as answers")
    found = certified(old, [written if one == answer else one for one in new], plain)
    assert found == "write labels as answers" or (isinstance(found, Certified) and found.whole.lost >= lost)


@pytest.mark.parametrize("unknown", [None, "", " ", float("nan"), np.float64("nan"), "NaN", "N/A", "?", "None"])
def test_a_label_that_nobody_knows_is_none(unknown: Any) -> None:
    old, new = [1] * 1000, [0] * 100 + [1] * 900
    labels = [unknown] * 100 + [1] * 900
    assert certified(old, new, labels) in (certify(old, new, None, 2), "leave a label out that nobody knows")


@pytest.mark.parametrize("missing", [None, "", float("nan")])
@pytest.mark.parametrize("lost", [10, 60, 200])
def test_an_answer_that_is_missing_is_right_for_nobody(missing: Any, lost: int) -> None:
    old = ["a"] * 1000
    new = [missing] * lost + old[lost:]
    free, labelled = certify(old, new, None, 2).whole, certify(old, new, old, 2).whole
    assert (free.lost, free.gained, free.unlabelled) == (0, 0, lost)
    assert (labelled.lost, labelled.gained) == (lost, 0)
    assert free.p_value >= labelled.p_value
    assert certify(new, old, old, 2).whole.gained == lost


def test_samples_that_were_judged_otherwise_are_refused(tmp_path: Path) -> None:
    def samples(name: str, **more: Any) -> Path:
        changes = {column: value if isinstance(value, list) else [value] * 40 for column, value in more.items()}
        rows = [{"doc_id": row} | {name: values[row] for name, values in changes.items()} for row in range(40)]
        return lines(tmp_path / f"{name}.jsonl", rows)

    good = samples("good", acc=1.0, doc_hash="x")
    for other, reason in (
        (samples("norm", acc_norm=1.0), "the samples are not judged alike"),
        (samples("answers", answer="a"), "the samples are not judged alike"),
        (samples("asked", acc=1.0, doc_hash="y"), "with one id ask for other things"),
        (samples("share", acc=0.9), "row 1: acc is 0.9; a sample is right (1) or wrong (0)"),
        (samples("null", acc=[1.0] * 39 + [None]), "row 40: acc is None"),
    ):
        for files in ((good, other), (other, good)):
            done = run("certify", "--answers", *files)
            assert (done.exit_code, reason in " ".join(done.stderr.split())) == (2, True), done.stderr
    twice = [
        {"doc_id": row // 2, "acc": 1.0, "filter": ("strict-match", "flexible-extract")[row % 2]} for row in range(40)
    ]
    done = run("certify", "--answers", good, lines(tmp_path / "twice.jsonl", twice))
    assert "keep the samples of one filter: flexible-extract, strict-match" in " ".join(done.stderr.split())
    done = run("certify", "--answers", good, lines(tmp_path / "gone.jsonl", [{"id": None, "answer": 1}] * 40))
    assert "row 1 has no id; give every row one" in " ".join(done.stderr.split())


def test_options_that_go_with_something_else_are_refused(tmp_path: Path) -> None:
    file = lines(tmp_path / "old.jsonl", [{"id": row, "answer": row % 2} for row in range(50)])
    done = run("certify", "--answers", file, file, "--output", tmp_path / "out")
    assert (done.exit_code, "--output: only with a result" in " ".join(done.stderr.split())) == (2, True)
    done = run("certify", tmp_path, "--by", "language", "--needed", tmp_path / "needed.jsonl")
    assert (done.exit_code, "--by and --needed: only with --answers" in " ".join(done.stderr.split())) == (2, True)


def test_pytorch_is_not_imported(tmp_path: Path) -> None:
    rows = [{"id": row, "answer": row % 2} for row in range(50)]
    file = lines(tmp_path / "old.jsonl", rows)
    code = (
        "import sys; from axformer.gate import certify_files; "
        f"certify_files({str(file)!r}, {str(file)!r}, None, 5); "
        "print([name for name in ('torch', 'transformers', 'pyarrow', 'scipy.stats') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
