"""A teacher: its loss is what the formula says, remembering changes nothing, and rows need no labels."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import axformer.auto  # noqa: F401 - some heads build their base model by its configuration
from axformer.data.batches import batched
from axformer.data.encoding import TokenLimits
from axformer.model.compact import compact
from axformer.repair.finetune import Lesson, finetune
from axformer.repair.teacher import Taught, for_teacher
from axformer.scores.measured import measure
from axformer.tasks.divergence import Divergence
from axformer.wire.finetuning import FinetuneSettings, make_settings
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, some_plan

CASES = [case for case in all_cases() if case.family == "bert" and case.task != "masked_lm"]
CASES += [case for case in all_cases() if case.task == "classification" and case.family != "bert"]
CASES += [Case("gpt2", "causal_lm")]
BERT = Case("bert", "classification")


def small(case: Case) -> Any:
    checkpoint = checkpoint_of(case)
    return compact(checkpoint.model, checkpoint.architecture, some_plan(3))


def taught(case: Case, **settings: Any) -> Taught:
    checkpoint = checkpoint_of(case)
    return Taught(checkpoint.task, checkpoint.model, range(4), make_settings({"teacher": True, **settings}))


@torch.no_grad()
def losses(case: Case, objective: Taught) -> Tensor:
    model = small(case)
    return torch.stack([objective.loss(model, batch) for batch in data_of(case).samples.batches])


def test_the_loss_of_a_classifier_is_that_of_hinton_and_others() -> None:
    checkpoint, (batch, *_) = checkpoint_of(BERT), data_of(BERT).samples.batches
    with torch.no_grad():
        student, teacher = small(BERT)(**batch.inputs).logits, checkpoint.model(**batch.inputs).logits
        hard = functional.cross_entropy(student, batch.labels)
        soft = functional.kl_div((student / 3).log_softmax(-1), (teacher / 3).softmax(-1), reduction="batchmean")
        given = taught(BERT, teacher_weight=0.3, temperature=3.0).loss(small(BERT), batch)
    torch.testing.assert_close(given, 0.7 * hard + 0.3 * 9 * soft)


def test_numbers_are_compared_like_labels() -> None:
    case = Case("bert", "regression")
    checkpoint, (batch, *_) = checkpoint_of(case), data_of(case).samples.batches
    with torch.no_grad():
        student, teacher = small(case)(**batch.inputs).logits, checkpoint.model(**batch.inputs).logits
        given = taught(case, teacher_weight=1.0, temperature=3.0).loss(small(case), batch)
        as_labels = checkpoint.task.losses(small(case)(**batch.inputs), replace(batch, labels=teacher)).mean()
    torch.testing.assert_close(given, as_labels)
    torch.testing.assert_close(given, (student - teacher).square().mean())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_untouched_model_differs_from_itself_in_nothing(case: Case) -> None:
    checkpoint, objective = checkpoint_of(case), taught(case, teacher_weight=1.0, hidden_weight=1.0)
    with torch.no_grad():
        for batch in data_of(case).samples.batches:
            assert objective.loss(checkpoint.model, batch).item() == pytest.approx(0.0, abs=1e-5)
    assert (losses(case, objective) > 1e-4).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_teacher_that_is_remembered_says_the_same(case: Case) -> None:
    objective = taught(case)
    expected = losses(case, objective)
    objective.remember(data_of(case).samples, lambda: None)
    torch.testing.assert_close(losses(case, objective), expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_teacher_that_is_remembered_in_one_batch_says_the_same_in_others(case: Case) -> None:
    objective, checkpoint = taught(case), checkpoint_of(case)
    expected = losses(case, objective)
    together = batched(data_of(case).samples.encoded, checkpoint.tokenizer, batch_tokens=10_000, device="cpu")
    assert len(together.batches) == 1 or checkpoint.padding.alone
    objective.remember(together, lambda: None)
    torch.testing.assert_close(losses(case, objective), expected)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_padding_of_questions_teaches_nothing(temperature: float) -> None:
    case = Case("bert", "question_answering")
    checkpoint, data, objective = checkpoint_of(case), data_of(case), taught(case, temperature=temperature)
    alone, together = (
        batched(data.samples.encoded, checkpoint.tokenizer, batch_tokens=tokens, device="cpu") for tokens in (1, 10_000)
    )
    with torch.no_grad():
        each, both = (
            torch.stack([objective.loss(small(case), batch) for batch in samples.batches]).mean()
            for samples in (alone, together)
        )
    torch.testing.assert_close(each, both)


def test_what_does_not_fit_is_not_remembered() -> None:
    objective, samples, seen = taught(BERT), data_of(BERT).samples, []
    objective.remember(samples, lambda: seen.append(1), most_bytes=10)
    assert len(seen) == 1
    assert objective._known == {}


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.family == "bert"] + [Case("gpt2", "causal_lm")],
    ids=str,
)
def test_rows_without_labels_teach(case: Case) -> None:
    checkpoint, data = checkpoint_of(case), data_of(case)
    config = checkpoint.model.config
    inputs = checkpoint.task.inputs(data.rows, checkpoint.tokenizer, config, TokenLimits(24)).only(
        tuple(data.samples.encoded.features)
    )
    encoded = for_teacher(replace(inputs, padding=checkpoint.padding), checkpoint.tokenizer)
    settings = FinetuneSettings(teacher=True, teacher_weight=1.0, epochs=8, learning_rate=1e-3, batch_size=4)
    model = small(case)
    divergence = Divergence(checkpoint.task, checkpoint.model, data.samples.batches)

    def distance() -> float:
        with torch.no_grad():
            return sum(float(divergence.losses(model(**batch.inputs), batch).sum()) for batch in data.samples.batches)

    before = distance()
    finetune(model, checkpoint.tokenizer, Lesson(encoded, taught(case, teacher_weight=1.0), settings))
    assert distance() < before


def test_hidden_states_come_nearer_to_the_teachers() -> None:
    checkpoint, data = checkpoint_of(BERT), data_of(BERT)
    settings = FinetuneSettings(
        teacher=True, teacher_weight=0.0, hidden_weight=10.0, epochs=8, learning_rate=1e-3, batch_size=4
    )
    objective = Taught(checkpoint.task, checkpoint.model, range(4), settings)
    model = small(BERT)
    before = losses(BERT, objective)
    finetune(model, checkpoint.tokenizer, Lesson(data.samples.encoded, objective, settings))
    with torch.no_grad():
        after = torch.stack([objective.loss(model, batch) for batch in data.samples.batches])
    assert after.mean() < before.mean()
    assert measure(model, checkpoint.task, data.samples).losses.isfinite().all()
