"""A run stops before its first trial where the untouched model is worse than guessing, and only there."""

import html
import json
import math
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertForSequenceClassification
from typer.testing import CliRunner

import axformer
from axformer.cli.main import app
from axformer.config import PassConfig, make_config
from axformer.data.batches import Batch
from axformer.data.reading import rows_of
from axformer.errors import CheckpointError, InputError, PoorModelError
from axformer.intake.checkpoint import Checkpoint, from_memory
from axformer.intake.dataset import DataSet, prepare
from axformer.opening import Inputs
from axformer.reporting.look import Look, look_at
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.tasks.base import Task
from axformer.tasks.classification import Classification
from axformer.tasks.guess import guess_of_flags
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.standing import Choices, Flags, agreement_of, better_order, is_reliably_positive, order_in_words
from axformer.tasks.token_classification import TokenClassification
from axformer.wire.report import Report
from tests.family_cases import SETTINGS, Case, checkpoint_of, data_of
from tests.tiny_models import (
    answered_rows,
    answering_model,
    tiny_config,
    tiny_model,
    tiny_rows,
    tiny_tokenizer,
    write_rows,
)

CONFIG = PassConfig(attention_top_k=None)


def look_of(model: BertForSequenceClassification, rows: list[dict[str, Any]]) -> Look:
    checkpoint = from_memory(model, tiny_tokenizer())
    return seen(checkpoint, prepare(rows_of(rows), checkpoint, CONFIG))


def seen(checkpoint: Checkpoint, data: DataSet) -> Look:
    return look_at(checkpoint, data, measure(checkpoint.model, checkpoint.task, data.samples))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_labels_that_count_the_classes_in_another_order_are_noticed_and_both_orders_told(
    order: tuple[int, ...],
) -> None:
    model = answering_model(3)
    model.config.id2label = dict(enumerate(("contradiction", "neutral", "entailment")))
    model.config.label2id = {name: index for index, name in model.config.id2label.items()}
    look = look_of(model, answered_rows(model, 60, order))
    if order == (0, 1, 2):
        assert (look.reason, look.note, look.figures["accuracy"]) == (None, None, 1.0)
        return look.check()
    with pytest.raises(PoorModelError) as caught:
        look.check()
    told = ", ".join(f"{index} = {model.config.id2label[order.index(index)]}" for index in range(3))
    for part in (
        "label2id says 0 = contradiction, 1 = neutral, 2 = entailment",
        told,
        "--accept-poor-model",
        "60 rows",
    ):
        assert part in str(caught.value)
    return None


@pytest.mark.slow
def test_held_out_labels_that_count_in_another_order_are_told_of_beside_their_figures(tmp_path: Path) -> None:
    model = answering_model(3)
    model.save_pretrained(tmp_path / "checkpoint")
    tiny_tokenizer().save_pretrained(tmp_path / "checkpoint")
    files = {name: tmp_path / f"{name}.jsonl" for name in ("validation", "right", "turned")}
    for name, order in (("validation", (0, 1, 2)), ("right", (0, 1, 2)), ("turned", (2, 1, 0))):
        write_rows(files[name], answered_rows(model, 60, order))
    config = tmp_path / "knobs.json"
    config.write_text(json.dumps({"method": "compress", "budgets": [0.9], "confirm": 0, "within_points": None}))
    for name, is_told in (("right", False), ("turned", True)):
        output = tmp_path / name
        data = ("--data", str(files["validation"]), "--test", str(files[name]))
        arguments = (*data, "--output", str(output), "--config", str(config), "--forms", "compact")
        done = CliRunner().invoke(app, ["prune", str(tmp_path / "checkpoint"), *arguments])
        assert done.exit_code == 0, done.output
        report = Report.model_validate_json((output / "report.json").read_text())
        assert report.data["validation"] is not None
        assert report.data["validation"].doubt is None
        told = "in another order: the model's label2id says 0 = "
        for text in (
            done.output,
            (output / "README.md").read_text(),
            html.unescape((output / "report.html").read_text()),
        ):
            assert (told in text) == is_told


@pytest.mark.slow
def test_training_labels_that_count_in_another_order_stop_the_run_and_the_training_of_a_stored_plan(
    tmp_path: Path,
) -> None:
    model = answering_model(3)
    checkpoint = tmp_path / "checkpoint"
    model.save_pretrained(checkpoint)
    tiny_tokenizer().save_pretrained(checkpoint)
    files = {name: tmp_path / f"{name}.jsonl" for name in ("validation", "right", "turned")}
    for name, order in (("validation", (0, 1, 2)), ("right", (0, 1, 2)), ("turned", (2, 1, 0))):
        write_rows(files[name], answered_rows(model, 60, order))
    data = ("--data", str(files["validation"]))

    def prune(train: str, *more: str) -> tuple[int, str, Path]:
        output = tmp_path / f"{train}{len(more)}"
        arguments = (
            "--train",
            str(files[train]),
            "--output",
            str(output),
            "--preset",
            "paper",
            "--forms",
            "compact",
            *more,
        )
        done = CliRunner().invoke(app, ["prune", str(checkpoint), *data, *arguments])
        return done.exit_code, " ".join(done.output.split()), output

    told = "turned.jsonl': the labels seem to count the classes in another order"
    code, output, result = prune("turned")
    assert (code, told in output, result.exists()) == (2, True, False), output
    for name, more in (("turned", ("--accept-poor-model",)), ("right", ())):
        code, output, result = prune(name, *more)
        assert (code, told in output) == (0, False), output
    applied = tmp_path / "applied"
    lessons = (*data, "--train", str(files["turned"]), "--output", str(applied))
    done = CliRunner().invoke(app, ["apply", str(result / "plan.json"), str(checkpoint), *lessons])
    assert (done.exit_code, told in " ".join(done.output.split()), applied.exists()) == (2, True, False), done.output
    accepted = tmp_path / "turned1" / "plan.json"
    assert CliRunner().invoke(app, ["apply", str(accepted), str(checkpoint), *lessons]).exit_code == 0


def test_a_python_run_stops_and_goes_on_where_it_is_told_to() -> None:
    model = answering_model(2)
    rows = answered_rows(model, 40, (1, 0))
    with pytest.raises(PoorModelError, match="worse than guessing"):
        axformer.prune(model, tiny_tokenizer(), rows, CONFIG)
    accepted = make_config("paper", {"accept_poor_model": True, "attention_top_k": None})
    assert axformer.prune(model, tiny_tokenizer(), rows, accepted).trace[0].total == 40


def test_it_looks_at_the_rows_that_decide() -> None:
    checkpoint = from_memory(answering_model(2), tiny_tokenizer())
    config = make_config("paper", {"confirm": 0.25, "accept_poor_model": True})
    run = PruningRun(Inputs(checkpoint, prepare(rows_of(tiny_rows(40)), checkpoint, config)), config)
    assert run.look().rows == 30


def test_a_loss_that_is_no_number_is_refused_as_such() -> None:
    model = tiny_model()
    with torch.no_grad():
        model.classifier.bias.fill_(torch.nan)
    with pytest.raises(CheckpointError, match="loss on the validation set is nan"):
        look_of(model, tiny_rows(20))


def sure_of_it(expected: np.ndarray, predicted: np.ndarray, sure: float) -> Look:
    """A look at a classifier of two classes that gives its answers the probability ``sure``."""
    return answered(Classification(), expected, predicted, sure)


def answered(task: Task, expected: np.ndarray, predicted: np.ndarray, sure: float) -> Look:
    """A look at a model of any task of two classes, of one decision a sample."""
    losses = np.where(expected == predicted, -math.log(sure), -math.log(1 - sure))
    samples, one_each = len(expected), isinstance(task, TokenClassification)
    labels = (expected[:, None] if one_each else expected).tolist()
    encoded = SimpleNamespace(labels=labels, samples=samples, choices=2, inputs=range(samples))
    config = SimpleNamespace(id2label={0: "bad", 1: "good"}, num_labels=2)
    answers = (predicted[:, None] if one_each else predicted).tolist()
    guess, stands = task.guess(encoded, config), task.standing(answers, encoded, config)  # type: ignore[arg-type]
    assert stands.right is not None
    figures = {"loss": float(losses.mean()), "accuracy": float(stands.right.mean())}
    return Look("data.jsonl", samples, figures, guess, stands, losses, np.ones(samples, dtype=bool))


@pytest.mark.parametrize("task", [TokenClassification(("bad", "good")), MultipleChoice()])
def test_tags_and_endings_stop_a_run_only_where_the_answers_go_against_them(task: Task) -> None:
    chance = np.random.default_rng(0)
    expected = chance.integers(2, size=200)
    for predicted, stops in ((chance.integers(2, size=200), False), (1 - expected, True)):
        look = answered(task, expected, predicted, sure=0.99)
        assert "the untouched model is worse than guessing" in str(look.note)
        assert (look.reason is not None) is stops


def mixed(counts: dict[tuple[int, int], int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Expected and predicted classes that occur together so often, in any order."""
    pairs = np.array([pair for pair, count in counts.items() for _ in range(count)])
    return tuple(np.random.default_rng(seed).permutation(pairs).T)


def test_a_model_that_is_surer_than_right_goes_on_with_a_note() -> None:
    look = sure_of_it(*mixed({(0, 0): 90, (0, 1): 41, (1, 0): 42, (1, 1): 104}), sure=0.99)
    assert look.figures["loss"] > math.log(2)
    assert look.reason is None
    assert "surer of itself" in str(look.note)


def test_a_model_that_looks_for_a_rare_class_goes_on_with_a_note() -> None:
    look = sure_of_it(*mixed({(0, 0): 800, (0, 1): 150, (1, 0): 5, (1, 1): 45}), sure=0.9)
    assert look.figures["accuracy"] < 0.95
    assert look.reason is None
    assert "rare class" in str(look.note)


@pytest.mark.parametrize("sure", [0.51, 0.6, 0.7])
@pytest.mark.parametrize("counts", [(31, 40), (128, 149), (322, 721)])
def test_a_model_that_always_gives_the_most_frequent_answer_goes_on(counts: tuple[int, int], sure: float) -> None:
    look = sure_of_it(*mixed({(0, 1): counts[0], (1, 1): counts[1]}), sure)
    assert (look.reason, look.note) == (None, None)


def test_a_model_that_always_gives_the_rarer_answer_does_not() -> None:
    look = sure_of_it(*mixed({(0, 0): 300, (1, 0): 700}), sure=0.6)
    assert "worse than guessing; look at whether the labels count the classes as the model does (0 = bad" in str(
        look.reason
    )


@given(st.integers(0, 10_000), st.integers(20, 200), st.integers(2, 5))
def test_answers_by_chance_that_are_not_sure_stop_hardly_a_run(seed: int, count: int, classes: int) -> None:
    chance = np.random.default_rng(seed)
    expected, predicted = chance.integers(classes, size=(2, count))
    choices = Choices(expected, predicted, np.arange(count), count, classes)
    assert better_order(choices, range(choices.samples)) is None
    assert not is_reliably_positive(agreement_of(choices))


@given(st.integers(0, 10_000), st.permutations(range(6)))
def test_classes_of_many_labels_in_another_order_are_found(seed: int, order: list[int]) -> None:
    expected = (np.random.default_rng(seed).random((120, 6)) < 0.3).astype(float)
    predicted = np.empty_like(expected)
    predicted[:, order] = expected
    found = better_order(Flags(expected, predicted), range(120))
    assert (found is None) == (order == sorted(order))
    assert found is None or list(found.classes) == order


def test_an_order_is_not_found_on_a_handful_of_rows() -> None:
    flipped = Choices(np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0]), np.arange(4), 4, 2)
    assert better_order(flipped, range(4)) is None
    assert not is_reliably_positive(np.ones(4))
    assert is_reliably_positive(np.ones(20))
    assert not is_reliably_positive(np.full(1000, 1e-7))


def test_of_many_classes_those_are_told_that_moved() -> None:
    names = [f"c{place}" for place in range(30)]
    order = [1, 0, *range(2, 30)]
    assert order_in_words(names, order) == "0 = c1, 1 = c0 and 28 more"
    assert order_in_words(names).endswith("9 = c9 and 20 more")


class Even:
    """What a model gives that finds all answers equally likely."""

    def __init__(self, batch: Batch, classes: int) -> None:
        tokens = batch.inputs["input_ids"].shape
        self.logits = torch.zeros(*tokens, classes) if batch.labels.dim() == 2 else torch.zeros(tokens[0], classes)
        self.start_logits = self.end_logits = torch.zeros(tokens)


@pytest.mark.parametrize("task", sorted(SETTINGS.keys() - {"multi_label_classification", "regression"}))
def test_guessing_has_the_loss_of_a_model_that_finds_all_answers_equally_likely(task: str) -> None:
    case = Case("gpt2" if task == "causal_lm" else "bert", task)
    checkpoint, samples = checkpoint_of(case), data_of(case).samples
    config = checkpoint.model.config
    classes = {"multiple_choice": samples.encoded.choices}.get(
        task, config.vocab_size if task.endswith("lm") else config.num_labels
    )
    losses = torch.empty(len(samples.sample_of_row))
    for batch in samples.batches:
        losses[batch.rows] = checkpoint.task.losses(Even(batch, classes), batch)
    guess = checkpoint.task.guess(samples.encoded, config)
    np.testing.assert_allclose(guess.losses, samples.per_sample(losses).numpy(), rtol=1e-5)


def test_guessing_many_labels_has_the_entropy_of_their_shares_and_guessing_numbers_the_variance() -> None:
    flags = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    guess = guess_of_flags(flags, ["a", "b", "c"])
    assert guess.figures["loss"] == pytest.approx(2 / 3 * -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert (guess.figures["accuracy"], guess.shares) == (0.5, {"a": 0.75, "b": 0.75})
    checkpoint, data = checkpoint_of(Case("bert", "regression")), data_of(Case("bert", "regression"))
    numbers = checkpoint.task.guess(data.samples.encoded, checkpoint.model.config)
    assert numbers.figures == {"loss": pytest.approx(float(np.var(data.samples.encoded.labels)))}


def test_a_regression_on_another_scale_is_refused_with_both_scales() -> None:
    checkpoint = from_memory(tiny_model(tiny_config(labels=1)), tiny_tokenizer())
    rows = [row | {"label": 100 + float(row["label"])} for row in tiny_rows(40, labels=1)]  # type: ignore[arg-type]
    look = seen(checkpoint, prepare(rows_of(rows), checkpoint, CONFIG))
    with pytest.raises(InputError, match=r"the scale \(labels: 100\.\S+ to 10\S+, mean \S+; the model's answers: "):
        look.check()


@pytest.mark.parametrize("task", sorted(SETTINGS))
def test_every_task_says_what_to_look_at(task: str) -> None:
    case = Case("gpt2" if task == "causal_lm" else "bert", task)
    look = seen(checkpoint_of(case), data_of(case))
    assert look.standing.causes.startswith(("whether", "the scale"))
    assert "(guessing: " in look.sentence


def test_the_result_says_it_first(result: Path) -> None:
    report = json.loads((result / "report.json").read_text(encoding="utf-8"))
    data = report["data"]["validation"]
    assert (data["shares"], data["guess"]) == ({"LABEL_0": 0.5, "LABEL_1": 0.5}, {"loss": math.log(2), "accuracy": 0.5})
    accuracy, loss = (report["base"]["validation"][name] for name in ("accuracy", "loss"))
    sentence = (
        f"40 rows, 50 % LABEL_0 / 50 % LABEL_1, labels read as indices of classes; the untouched model: "
        f"accuracy {accuracy:.4f}, loss {loss:.4f} "
        "(guessing: accuracy 0.5000, loss 0.6931)"
    )
    for page in ("README.md", "report.html"):
        assert sentence in (result / page).read_text(encoding="utf-8")
