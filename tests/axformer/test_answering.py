"""The answers that a command writes certify a model as those that somebody brings, and by few labels."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from axformer.answering import answers_to
from axformer.cli.main import app
from axformer.data.columns import DataSource
from axformer.gate import certify
from tests.tiny_models import list_rows, tiny_config, tiny_model, tiny_rows, tiny_tokenizer, write_rows


def saved(directory: Path, noise: float) -> Path:
    """A tiny classifier, or one that is near it."""
    model = tiny_model()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.classifier.parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator)
    model.save_pretrained(directory)
    tiny_tokenizer().save_pretrained(directory)
    return directory


def axformer(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_labels_of_the_changed_answers_certify_as_all_labels_do(tmp_path: Path) -> None:
    models = saved(tmp_path / "one", 0.0), saved(tmp_path / "other", 0.05)
    rows = tiny_rows(120)
    unlabelled = write_rows(tmp_path / "texts.jsonl", [{"text": row["text"]} for row in rows])
    files = [tmp_path / f"{model.name}.jsonl" for model in models]
    for model, file in zip(models, files, strict=True):
        assert axformer("answers", model, "--data", unlabelled, "--output", file).exit_code == 0
    whole = [
        answers_to(str(model), DataSource(str(write_rows(tmp_path / "all.jsonl", rows))), "cpu") for model in models
    ]
    told = [[row["answer"] for row in one] for one in whole]
    assert [row["answer"] for row in records(files[0])] == told[0]
    names = {row["label"] for row in whole[0]}
    assert names <= set(tiny_model().config.id2label.values())
    every = certify(*told, [row["label"] for row in whole[0]], 20).whole
    assert every.gained + every.lost > 0
    gate = ("certify", "--answers", *files, "--within-points", 20)
    axformer(*gate, "--needed", tmp_path / "needed.jsonl")
    needed = records(tmp_path / "needed.jsonl")
    assert all("answer" not in row for row in needed)
    changed = [row for row in range(120) if told[0][row] != told[1][row]]
    given = [{"id": row, "label": whole[0][row]["label"]} for row in changed]
    assert {int(row["id"]) for row in needed} <= set(changed)
    done = axformer(*gate, "--json", "--labels", write_rows(tmp_path / "labels.jsonl", given))
    assert json.loads(done.stdout)["whole"]["p_value"] == every.p_value
    assert done.exit_code == (not every.is_certified)


def test_one_output_is_yes_or_no_only_where_the_model_says_so(tmp_path: Path) -> None:
    model = tiny_model(tiny_config(labels=1))
    model.save_pretrained(tmp_path / "one")
    tiny_tokenizer().save_pretrained(tmp_path / "one")
    data = write_rows(tmp_path / "rows.jsonl", [{"text": row["text"]} for row in tiny_rows(30)])
    command = ("answers", tmp_path / "one", "--data", data, "--output", tmp_path / "answers.jsonl")
    refused = axformer(*command)
    assert refused.exit_code == 2
    assert "is a model for regression" in refused.stderr
    says = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}
    assert f"say {json.dumps(says)[1:-1]} in config.json" in " ".join(refused.stderr.split())
    config = tmp_path / "one" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | says))
    assert axformer(*command).exit_code == 0
    assert {row["answer"] for row in records(tmp_path / "answers.jsonl")} <= {0, 1}


def test_the_best_passage_is_an_answer_of_which_several_may_be_right(tmp_path: Path) -> None:
    lists = list_rows(60)
    without = [{name: row[name] for name in ("query", "passages")} for row in lists]
    graded: list[list[float]] = [
        [0.0] * len(row["passages"]) if place == 3 else grades_of(row) for place, row in enumerate(lists)
    ]
    data = write_rows(
        tmp_path / "graded.jsonl", [row | {"label": one} for row, one in zip(without, graded, strict=True)]
    )
    told, bare = [], []
    for seed in (0, 1):
        home = tmp_path / f"ranker-{seed}"
        tiny_model(tiny_config(labels=1), seed).save_pretrained(home)
        tiny_tokenizer().save_pretrained(home)
        output = tmp_path / f"answers-{seed}.jsonl"
        assert axformer("answers", home, "--data", data, "--output", output).exit_code == 0
        told.append(records(output))
        bare.append(answers_to(str(home), DataSource(str(write_rows(tmp_path / "bare.jsonl", without))), "cpu"))
    assert [row["label"] for row in told[0]] == [next(iter(right_of(grades)), None) for grades in graded]
    assert [row["passages"] for row in told[0]] == [row["passages"] for row in lists]
    changed = 0
    for named, own in zip(told, bare, strict=True):
        for row, alone, grades in zip(named, own, graded, strict=True):
            right = right_of(grades)
            assert row["answer"] == (right[0] if alone["answer"] in right else alone["answer"])
            changed += row["answer"] != alone["answer"]
    assert changed > 0, "some answers are a right passage that is not the first"
    answered = [[row["answer"] for row in one] for one in told]
    gate = certify(*answered, [row["label"] for row in told[0]], 20).whole
    ids = [[alone["answer"] in right_of(grades) for alone, grades in zip(one, graded, strict=True)] for one in bare]
    assert (
        gate.lost - gate.unlabelled
        <= sum(before and not after for before, after in zip(*ids, strict=True))
        <= gate.lost
    )


def grades_of(row: dict[str, Any]) -> list[float]:
    """Grades of which the right passage and the one after it have the highest."""
    count = len(row["passages"])
    return [2.0 if place in (row["label"], (row["label"] + 1) % count) else float(place % 2) for place in range(count)]


def right_of(grades: list[float]) -> list[int]:
    """The places of the highest grade, none where that is 0."""
    return [place for place, grade in enumerate(grades) if grade == max(grades) > 0]


@pytest.mark.parametrize("command", ["certify", "answers"])
def test_what_is_missing_and_a_file_that_is_there_are_refused(command: str, tmp_path: Path) -> None:
    there = write_rows(tmp_path / "rows.jsonl", tiny_rows(3))
    given = () if command == "certify" else ("model", "--data", there, "--output", there)
    refused = axformer(command, *given)
    assert refused.exit_code == 2
    assert ("--answers OLD NEW" if command == "certify" else "exists; choose another file") in refused.stderr
