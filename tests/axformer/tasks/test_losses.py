"""The laws of every task: its losses are transformers' own, whatever the order, the batches and the windows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    GPT2Config,
    LlamaConfig,
)

from axformer.data.batches import Batch, Samples, batched
from axformer.data.encoding import TokenLimits
from axformer.data.reading import rows_of
from axformer.scores.measured import measure
from axformer.tasks.base import Task
from axformer.tasks.registry import task_of
from tests.tiny_models import (
    MAX_TOKENS,
    SPECIAL,
    WORDS,
    choice_rows,
    multi_label_rows,
    question_rows,
    tagged_rows,
    tiny_config,
    tiny_head,
    tiny_rows,
    tiny_tokenizer,
)

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
CAUSAL = {"vocab_size": len(SPECIAL) + len(WORDS), "hidden_size": 32, "pad_token_id": 0, "initializer_range": 0.3}
CAUSAL |= {"num_hidden_layers": 2, "num_attention_heads": 4, "bos_token_id": 2, "eos_token_id": 3}
Records = list[dict[str, object]]


@dataclass(frozen=True)
class Case:
    """One task with a tiny model and data for it."""

    auto_class: Any
    config: Callable[[], Any]
    records: Callable[[], Records]
    max_length: int | None = None
    padding_side: str = "right"


def tagged_config() -> Any:
    config = tiny_config(labels=len(TAGS))
    config.id2label, config.label2id = dict(enumerate(TAGS)), {tag: index for index, tag in enumerate(TAGS)}
    return config


def multi_label_config() -> Any:
    config = tiny_config(labels=3)
    config.problem_type = "multi_label_classification"
    return config


def one_output_config(problem_type: str | None = "multi_label_classification") -> Any:
    """transformers has the binary cross-entropy of one output under that name."""
    config = tiny_config(labels=1)
    config.problem_type = problem_type
    return config


def several_outputs_config() -> Any:
    config = tiny_config(labels=3)
    config.problem_type = "regression"
    return config


def graded_rows(count: int) -> Records:
    return [row | {"label": index / count} for index, row in enumerate(tiny_rows(count))]


def several_numbers_rows(count: int) -> Records:
    return [row | {"label": [index / 2, 1.0, -index]} for index, row in enumerate(tiny_rows(count))]


def partly_answered_rows(count: int) -> Records:
    nothing = {"answers": {"text": [], "answer_start": []}}
    return [row | nothing if index % 3 else row for index, row in enumerate(question_rows(count))]


def gpt2() -> Any:
    return GPT2Config(**CAUSAL, n_positions=MAX_TOKENS)


def llama() -> Any:
    return LlamaConfig(**CAUSAL, intermediate_size=48, num_key_value_heads=2)


CASES = {
    "classification": Case(AutoModelForSequenceClassification, tiny_config, lambda: tiny_rows(12)),
    "pairs": Case(AutoModelForSequenceClassification, tiny_config, lambda: tiny_rows(12, pairs=True)),
    "causal classification": Case(AutoModelForSequenceClassification, gpt2, lambda: tiny_rows(12)),
    "multi-label": Case(AutoModelForSequenceClassification, multi_label_config, lambda: multi_label_rows(12)),
    "regression": Case(
        AutoModelForSequenceClassification, lambda: tiny_config(labels=1), lambda: tiny_rows(12, labels=1)
    ),
    "binary": Case(AutoModelForSequenceClassification, one_output_config, lambda: tiny_rows(12)),
    "graded": Case(AutoModelForSequenceClassification, one_output_config, lambda: graded_rows(12)),
    "several numbers": Case(
        AutoModelForSequenceClassification, several_outputs_config, lambda: several_numbers_rows(12)
    ),
    "tags": Case(AutoModelForTokenClassification, tagged_config, lambda: tagged_rows(12, TAGS)),
    "questions": Case(AutoModelForQuestionAnswering, tiny_config, lambda: question_rows(12)),
    "questions, padded left": Case(AutoModelForQuestionAnswering, llama, lambda: question_rows(12), 24, "left"),
    "questions in windows": Case(AutoModelForQuestionAnswering, tiny_config, lambda: question_rows(12), 20),
    "questions, some without an answer": Case(
        AutoModelForQuestionAnswering, tiny_config, lambda: partly_answered_rows(12), 20
    ),
    "choices": Case(AutoModelForMultipleChoice, tiny_config, lambda: choice_rows(12)),
    "masked": Case(AutoModelForMaskedLM, tiny_config, lambda: tiny_rows(12)),
    "causal": Case(AutoModelForCausalLM, gpt2, lambda: tiny_rows(12)),
    "causal, padded left": Case(AutoModelForCausalLM, llama, lambda: tiny_rows(12), None, "left"),
}
every_case = pytest.mark.parametrize("name", CASES)


@cache
def model_of(name: str) -> Any:
    return tiny_head(CASES[name].auto_class, CASES[name].config())


def samples_of(name: str, records: Records | None = None, batch_tokens: int = 10_000) -> tuple[Task, Samples]:
    case, model = CASES[name], model_of(name)
    tokenizer = tiny_tokenizer()
    tokenizer.padding_side = case.padding_side
    rows = rows_of(case.records() if records is None else records)
    task = task_of(case.auto_class, model.config, rows)
    encoded = task.encode(rows, tokenizer, model.config, TokenLimits(case.max_length, MAX_TOKENS))
    if model.config.model_type == "gpt2":
        encoded = encoded.only(("input_ids", "attention_mask"))  # its token types would be words
    return task, batched(encoded, tokenizer, batch_tokens=batch_tokens, device="cpu")


def labels_of(name: str, batch: Batch) -> dict[str, torch.Tensor]:
    if name.startswith("questions"):
        return {"start_positions": batch.labels[:, 0], "end_positions": batch.labels[:, 1]}
    return {"labels": batch.labels[:, None] if name in ("binary", "graded") else batch.labels}


@every_case
@torch.inference_mode()
def test_the_loss_of_one_row_is_that_of_transformers(name: str) -> None:
    task, samples = samples_of(name, batch_tokens=1)
    assert all(len(batch.rows) == 1 for batch in samples.batches)
    for batch in samples.batches:
        output = model_of(name)(**batch.inputs, **labels_of(name, batch))
        torch.testing.assert_close(task.losses(output, batch)[0], output.loss, rtol=1e-5, atol=1e-6)


@every_case
def test_order_and_batches_do_not_change_the_losses(name: str) -> None:
    model, records = model_of(name), CASES[name].records()
    results = []
    for batch_tokens, step in [(10_000, 1), (1, 1), (60, -1)]:
        task, samples = samples_of(name, records[::step], batch_tokens)
        measured = measure(model, task, samples)
        losses = measured.losses
        assert losses.shape == (12,)
        results.append((losses.numpy()[::step], measured.figures))
        right = measured.right
        assert measured.table.shape[0] == 12
        assert right is None or (right.shape, right.dtype) == ((12,), np.bool_)
    for losses, metrics in results[1:]:
        np.testing.assert_allclose(losses, results[0][0], rtol=1e-5, atol=1e-6)
        # A correlation near 0 is a small difference of large sums.
        assert metrics == pytest.approx(results[0][1], rel=1e-5, abs=1e-5)


@every_case
def test_one_row_a_sample_is_the_identity_and_windows_average(name: str) -> None:
    task, samples = samples_of(name)
    losses, model = torch.empty(len(samples.sample_of_row)), model_of(name)
    with torch.inference_mode():
        for batch in samples.batches:
            losses[batch.rows] = task.losses(model(**batch.inputs), batch)
    mean = samples.per_sample(losses)
    assert torch.equal(measure(model, task, samples).losses, mean)
    if len(losses) == len(samples):
        assert mean is losses
        return
    assert CASES[name].max_length is not None
    for sample in range(len(samples)):
        assert mean[sample].item() == pytest.approx(losses[samples.sample_of_row == sample].mean().item(), rel=1e-6)


def test_each_head_has_its_task() -> None:
    names = {task_of(case.auto_class, case.config(), rows_of(case.records())).name for case in CASES.values()}
    assert names == {
        *("classification", "multi_label_classification", "regression", "token_classification"),
        *("binary_classification", "graded_classification"),
        *("question_answering", "multiple_choice", "masked_lm", "causal_lm"),
    }
