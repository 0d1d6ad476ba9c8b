"""A result has the number format of its checkpoint, and computes the same wherever it is loaded."""

from copy import deepcopy
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import axformer
from axformer.config import PassConfig
from axformer.data.columns import DataSource
from axformer.intake.checkpoint import load_checkpoint
from axformer.model.compact import compact
from axformer.model.number_format import KEPT, cast, computing_in, format_of, most_common
from axformer.repair.finetune import Lesson, finetune
from axformer.repair.teacher import TaskLoss
from axformer.scores.measured import measure_sets, scores_of
from axformer.wire.finetuning import FinetuneSettings
from tests.family_cases import Case, all_cases, checkpoint_of, data_of, some_plan, stock_model
from tests.runs import open_run
from tests.tiny_models import save_tiny_checkpoint, tiny_model, tiny_rows, tiny_tokenizer, write_rows

HALF = (torch.bfloat16, torch.float16)
CASES = [case for case in all_cases() if case.task == "classification"] + [Case("gpt2", "causal_lm")]


@given(st.lists(st.tuples(st.sampled_from([*KEPT, torch.float64, None]), st.integers(1, 100)), max_size=8))
def test_the_format_of_most_weights_is_that_of_the_result(
    weights: list[tuple[torch.dtype | None, int]],
) -> None:
    counts = {dtype: sum(count for found, count in weights if found is dtype) for dtype, _ in weights}
    chosen = most_common(weights)
    assert chosen in KEPT
    if counts and chosen in counts:
        assert counts[chosen] == max(counts.values()) or chosen is torch.float32
    else:
        assert chosen is torch.float32


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_saved_in_half_the_bits_computes_the_same_by_every_door(
    tmp_path: Path, case: Case, dtype: torch.dtype
) -> None:
    checkpoint, batch = checkpoint_of(case), data_of(case).samples.batches[0]
    small = cast(compact(checkpoint.model, checkpoint.architecture, some_plan(1)), dtype)
    small.save_pretrained(tmp_path)
    assert {part.dtype for part in load_file(tmp_path / "model.safetensors").values()} == {dtype}
    with torch.inference_mode():
        expected = small(**batch.inputs).logits
        for door in (axformer.load(tmp_path), checkpoint.head.auto_class.from_pretrained(tmp_path).eval()):
            assert {part.dtype for part in door.parameters()} == {dtype}
            assert torch.equal(door(**batch.inputs).logits, expected)


@pytest.mark.parametrize("dtype", KEPT, ids=str)
def test_a_checkpoint_knows_its_format_whatever_its_configuration_says(tmp_path: Path, dtype: torch.dtype) -> None:
    directory = save_tiny_checkpoint(tmp_path)
    weights = {name: part.to(dtype) for name, part in load_file(directory / "model.safetensors").items()}
    weights["classifier.bias"] = weights["classifier.bias"].float()
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    loaded = load_checkpoint(directory)
    assert (loaded.dtype, format_of(loaded.model)) == (dtype, torch.float32)


def test_a_model_computes_in_another_format_only_inside() -> None:
    model = tiny_model()
    model.classifier.half()
    before = {name: part.clone() for name, part in model.state_dict().items()}
    with computing_in(model, torch.bfloat16):
        assert {part.dtype for part in model.parameters()} == {torch.bfloat16}
    for name, part in model.state_dict().items():
        assert part.dtype == before[name].dtype
        assert torch.equal(part, before[name])


@pytest.mark.parametrize("dtype", KEPT, ids=str)
def test_a_model_in_memory_gives_one_of_its_own_format(dtype: torch.dtype) -> None:
    model = deepcopy(stock_model(Case("llama", "classification"))).to(dtype)
    rows = tiny_rows(12, labels=3)
    result = axformer.prune(model, tiny_tokenizer(), rows, PassConfig(majority_fraction=0.2))
    assert {part.dtype for part in result.model.parameters()} == {dtype} == {model.dtype}


def test_training_after_a_pass_computes_in_float32_and_hands_out_what_came_in(tmp_path: Path) -> None:
    directory = save_tiny_checkpoint(tmp_path / "checkpoint")
    cast(tiny_model(), torch.bfloat16).save_pretrained(directory)
    data = DataSource(str(write_rows(tmp_path / "rows.jsonl", tiny_rows(24))))
    how = FinetuneSettings(epochs=1, learning_rate=1e-3, batch_size=8)
    run = open_run(directory, data, config=PassConfig(majority_fraction=0.2), train=data, finetune=how)
    list(run.trials())
    run.repair()
    trained, plain = run._repaired, run.compact_model()
    assert trained is not None
    assert {part.dtype for part in trained.model.parameters()} == {torch.bfloat16}
    sets = {"validation": run._validation, "test": None}
    assert trained.record.before == scores_of(measure_sets(plain, run._checkpoint.task, sets))
    checkpoint, lessons = run._checkpoint, run._validation.samples.encoded
    whole = compact(checkpoint.model, checkpoint.architecture, run.plan)
    finetune(whole, checkpoint.tokenizer, Lesson(lessons, TaskLoss(checkpoint.task), how))
    same = cast(whole, torch.bfloat16).state_dict()
    assert all(torch.equal(part, same[name]) for name, part in trained.model.state_dict().items())
