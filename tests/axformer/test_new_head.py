"""Base models with a new head: trained first, kept as the untouched model, and the same bytes whatever interrupts it."""

import json
import signal
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForSequenceClassification

import axformer
from axformer.apply import Lessons, apply_plan
from axformer.config import make_config
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.errors import CheckpointError, ConfigError, DataError, InputError
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.plan.path import Stop
from axformer.plan.plan import Plan, read_plan_file
from axformer.plan.trial import Trial
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.surroundings import Surroundings
from axformer.wire.finetuning import make_settings
from axformer.wire.heads import NewHead, parse_head
from tests.family_cases import SETTINGS, Case, all_cases, stock_model
from tests.forked import forked_interpreter
from tests.runs import open_run
from tests.tiny_families import tiny_family_config, tiny_family_model, tiny_family_tokenizer
from tests.tiny_models import save_tiny_checkpoint, tiny_rows, write_rows

HEAD = NewHead(task="classification", labels=("no", "yes"))
LESSONS = make_settings({"epochs": 2, "batch_size": 8, "learning_rate": 1e-3})
RANKED: Mapping[str, Any] = {"method": "rank", "step": 0.3, "confirm": 0.0, "within_points": None}
LAYERS: Mapping[str, Any] = {"method": "layers", "confirm": 0.0, "within_points": None}
LABELS = {
    "classification": ("LABEL_0", "LABEL_1", "LABEL_2"),
    "multi_label_classification": ("LABEL_0", "LABEL_1", "LABEL_2"),
    "token_classification": ("LABEL_0", "LABEL_1", "LABEL_2"),
}
LANGUAGE = ("masked_lm", "causal_lm")
HEADS = [
    case
    for case in all_cases()
    if case.task == "classification" or (case.family == "bert" and case.task not in LANGUAGE)
]
KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from tests.axformer.test_new_head import opened
from axformer.surroundings import Surroundings
steps = []
def kill():
    steps.append(1)
    if len(steps) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
torch.set_num_threads(1)
opened(Path(sys.argv[1]), Surroundings(Path(sys.argv[2]), check_cancelled=kill))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model, which is a masked language model without a pooler, and data with named labels."""
    directory = tmp_path_factory.mktemp("head")
    save_base("bert", directory / "base", masked=True)
    for name, count, seed in (("validation", 24, 1), ("test", 16, 2), ("train", 24, 3)):
        write_rows(directory / f"{name}.jsonl", named(tiny_rows(count, seed=seed)))
    return directory


def named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"label": HEAD.labels[row["label"]]} for row in rows]


def save_base(family: str, directory: Path, *, masked: bool = False) -> Path:
    """A tiny base model: the bare encoder, or with the head of a masked language model."""
    if masked:
        model = tiny_family_model(family, SETTINGS["masked_lm"][0])
    else:
        torch.manual_seed(0)
        model = AutoModel.from_config(tiny_family_config(family)).eval()
    model.save_pretrained(directory)
    tiny_family_tokenizer(family).save_pretrained(directory)
    return directory


def source(path: Path) -> DataSource:
    return DataSource(str(path))


def opened(
    files: Path,
    surroundings: Surroundings | None = None,
    knobs: Mapping[str, Any] = RANKED,
    *,
    base: str = "base",
    head: NewHead = HEAD,
    **given: Any,
) -> PruningRun:
    inputs = {"test": source(files / "test.jsonl"), "train": source(files / "train.jsonl"), "finetune": LESSONS}
    config = make_config("paper", {"accept_poor_model": True, **knobs})
    return open_run(
        *(files / base, source(files / "validation.jsonl")),
        **{"config": config, "head": head, "surroundings": surroundings, **inputs, **given},
    )


def bytes_of(run: PruningRun) -> bytes:
    """The weights of the trained model."""
    assert run._inputs.headed is not None
    return (run._inputs.headed.directory / "model.safetensors").read_bytes()


def timeless(trials: list[Trial]) -> list[Trial]:
    return [trial.model_copy(update={"seconds": 0.0}) for trial in trials]


@cache
def undisturbed(files: Path) -> bytes:
    return bytes_of(opened(files))


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(files: Path) -> None:
    assert bytes_of(opened(files)) == undisturbed(files)
    assert bytes_of(opened(files, finetune=LESSONS.model_copy(update={"seed": 1}))) != undisturbed(files)


def test_the_trained_model_knows_its_classes_and_has_learned(files: Path) -> None:
    run = opened(files, finetune=LESSONS.model_copy(update={"epochs": 8, "dropout": False}))
    assert run._inputs.headed is not None
    model = AutoModelForSequenceClassification.from_pretrained(run._inputs.headed.directory)
    assert model.config.id2label == {0: "no", 1: "yes"}
    curve = run._inputs.headed.record.curve
    trained = [point.loss for point in curve if point.loss is not None]
    third = len(trained) // 3
    assert sum(trained[-third:]) < sum(trained[:third])


def test_unlabelled_rows_have_the_answers_of_the_trained_head(files: Path, tmp_path: Path) -> None:
    texts = write_rows(tmp_path / "texts.jsonl", [{"text": row["text"]} for row in tiny_rows(60, seed=9)])
    run = opened(files, unlabelled=source(texts))
    assert run._unlabelled is not None
    assert measure(run._checkpoint.model, run._checkpoint.task, run._unlabelled.samples).figures["accuracy"] == 1.0
    assert len(set(run._unlabelled.samples.encoded.labels)) == 2, "the head has learned something"


@pytest.mark.slow
def test_a_killed_training_goes_on_and_ends_with_the_same_bytes(files: Path, tmp_path: Path) -> None:
    killed = forked_interpreter(["-c", KILLED, str(files), str(tmp_path)])
    assert killed.returncode == -signal.SIGKILL
    steps: list[int] = []
    run = opened(files, Surroundings(tmp_path, on_step=lambda step: steps.append(step.done)))
    assert steps[0] == 4, "the first epoch of three steps was saved"
    assert bytes_of(run) == undisturbed(files)
    again: list[int] = []
    assert bytes_of(opened(files, Surroundings(tmp_path, on_step=lambda step: again.append(step.done)))) == bytes_of(
        run
    )
    assert again == [], "a training that had ended is not repeated"


@pytest.mark.slow
def test_apply_makes_the_model_of_the_plan_again_from_the_untouched_one(files: Path, tmp_path: Path) -> None:
    knobs = {**RANKED, "until": 0.3}
    run = opened(files, knobs=knobs)
    list(run.trials())
    report = run.publish(tmp_path / "result")
    assert report["head"]["task"] == "classification"
    assert report["head"]["labels"] == ["no", "yes"]
    untouched, plan = tmp_path / "result" / "untouched", read_plan_file(tmp_path / "result")
    assert plan.source.sha256 == load_checkpoint(untouched).sha256
    config = json.loads((untouched / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert str(tmp_path) not in (untouched / "config.json").read_text()
    apply_plan(plan, untouched, source(files / "validation.jsonl"), tmp_path / "applied", forms=None)
    checkpoint = load_checkpoint(tmp_path / "result" / "untouched")
    validation = prepare(read_rows(str(files / "validation.jsonl")), checkpoint, run.config)
    scored = measure(axformer.load(tmp_path / "applied"), checkpoint.task, validation.samples)
    assert scored.figures == pytest.approx(report["finetune"]["before"]["validation"], rel=1e-6)
    card = (tmp_path / "result" / "README.md").read_text(encoding="utf-8")
    assert "a base model with a new head for classification, trained on 24 rows (2 epochs)" in card


@pytest.mark.slow
def test_layers_leave_the_base_model_and_then_it_is_trained(files: Path, tmp_path: Path) -> None:
    """The paper drops first and fine-tunes with the new head (section 4)."""
    at_once, first = (
        opened(files, knobs={**LAYERS, "drop": 2, "schedule": name}) for name in ("at_once", "finetune_first")
    )
    assert at_once._inputs.headed is not None
    trained = load_checkpoint(at_once._inputs.headed.directory)
    plan = Plan.full(trained.dimensions).dropping((2, 3))
    fitting = open_run(
        *(at_once._inputs.headed.directory, source(files / "validation.jsonl")),
        config=make_config("paper", {"accept_poor_model": True, **LAYERS, "drop": 2}),
        train=source(files / "train.jsonl"),
        finetune=LESSONS.model_copy(update={"teacher": False}),  # as with a new head
    )
    last = [list(run.trials())[-1] for run in (at_once, first, fitting)]
    assert [trial.plan for trial in last] == [plan.layers] * 3
    assert last[0].loss != last[1].loss, "one begins with the base model, the other with the trained one"
    assert last[1].loss == last[2].loss, "dropping from the trained model is the paper's FT-6"


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["at_once", "finetune_first"])
def test_card_says_whether_apply_trains_the_models_of_the_path_as_the_run_did(
    files: Path, tmp_path: Path, schedule: str
) -> None:
    run, result = opened(files, knobs={**LAYERS, "drop": 1, "schedule": schedule}), tmp_path / "result"
    trials = list(run.trials())
    run.publish(result)
    apply_plan(
        read_plan_file(result),
        result / "untouched",
        source(files / "validation.jsonl"),
        tmp_path / "applied",
        forms=["stock"],
        stop=Stop(trials, 1),
        lessons=Lessons(
            source(files / "train.jsonl"), make_settings({"teacher": False, **LESSONS.model_dump(exclude_unset=True)})
        ),
    )
    one, other = (load_file(place / "stock" / "model.safetensors") for place in (result, tmp_path / "applied"))
    is_same = all(torch.equal(weight, other[name]) for name, weight in one.items())
    card = " ".join((result / "README.md").read_text().split())
    assert is_same == (schedule == "finetune_first")
    assert ("`axformer apply --upto` with `--train` writes any" in card) == is_same
    assert ("trained as with schedule=finetune_first, and not with at_once" in card) != is_same


@pytest.mark.slow
def test_a_run_of_layers_with_a_new_head_is_resumed_as_if_undisturbed(files: Path, tmp_path: Path) -> None:
    knobs = {**LAYERS, "schedule": "gradual"}
    whole = list(opened(files, knobs=knobs).trials())
    run = opened(files, Surroundings(tmp_path), knobs)
    half = [trial for trial, _ in zip(run.trials(surroundings=Surroundings(tmp_path)), range(2), strict=False)]
    resumed = opened(files, Surroundings(tmp_path), knobs)
    assert timeless(list(resumed.trials(half, surroundings=Surroundings(tmp_path)))) == timeless(whole)


@pytest.mark.parametrize("case", HEADS, ids=str)
def test_every_family_takes_every_head_that_it_has(case: Case, tmp_path: Path) -> None:
    base = save_base(case.family, tmp_path / "base")
    head = NewHead(task=case.task, labels=LABELS.get(case.task, ()))  # type: ignore[arg-type]
    loaded = load_checkpoint(base, "cpu", head)
    assert type(loaded.model).__name__ == type(stock_model(case)).__name__
    assert loaded.task.name == case.task
    again = load_checkpoint(base, "cpu", head)
    assert all(
        torch.equal(weight, again.model.state_dict()[name]) for name, weight in loaded.model.state_dict().items()
    )


@pytest.mark.parametrize("case", [case for case in all_cases() if case.task in LANGUAGE], ids=str)
def test_the_head_of_a_language_model_makes_way(case: Case, tmp_path: Path) -> None:
    whole = stock_model(case)
    whole.save_pretrained(tmp_path)
    tiny_family_tokenizer(case.family).save_pretrained(tmp_path)
    loaded = load_checkpoint(tmp_path, "cpu", HEAD).model
    assert loaded.config.num_labels == 2
    there = loaded.state_dict()
    encoder = {
        name: weight for name, weight in whole.state_dict().items() if name.startswith(f"{loaded.base_model_prefix}.")
    }
    assert len(encoder) > 10, "the encoder is the same"
    assert all(torch.equal(weight, there[name]) for name, weight in encoder.items() if name in there)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"train": None}, ConfigError, "head=classification puts an untrained head on the model"),
        ({"finetune": make_settings({"teacher": True, "teacher_weight": 1.0})}, ConfigError, "takes labels"),
        ({"base": "tuned"}, CheckpointError, "has a head for sequence classification already"),
        ({"base": "tuned", "head": NewHead(task="question_answering")}, CheckpointError, "is for base models"),
        ({"base": "unnamed"}, CheckpointError, "so it has such a head already"),
        ({"head": NewHead(task="classification", labels=("a", "b"))}, DataError, "no"),
        ({"head": NewHead(task="token_classification", labels=("no", "yes"))}, DataError, "tokens"),
        ({"knobs": {**RANKED, "until": 0.001, "step": 0.001}}, ConfigError, "removes none"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_training(
    files: Path, changes: dict[str, Any], error: type[InputError], message: str
) -> None:
    if changes.get("base") and not (files / "tuned").exists():
        save_tiny_checkpoint(files / "tuned")
        save_tiny_checkpoint(files / "unnamed")
        config = json.loads((files / "unnamed" / "config.json").read_text())
        (files / "unnamed" / "config.json").write_text(json.dumps(config | {"architectures": None}))
    steps: list[Any] = []
    with pytest.raises(error, match=message):
        opened(files, Surroundings(on_step=steps.append), **changes)
    assert steps == [], "nothing was trained"


def test_a_base_model_without_a_head_is_told_how_to_get_one(files: Path) -> None:
    save_base("bert", files / "bare")
    with pytest.raises(CheckpointError, match="or give it a head and training data"):
        load_checkpoint(files / "bare")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("classfication=a,b", "did you mean"),
        ("classification", "needs the names of at least 2 classes, not 0"),
        ("classification=a", "not 1"),
        ("classification=a,a", "'a' twice"),
        ("regression=a", "has no classes"),
        ("classification=a,,b", "at least 1 character"),
    ],
)
def test_a_head_that_cannot_be_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_head(text)


@pytest.mark.parametrize("text", ["classification=no,yes", "regression", "token_classification=O,B-PER"])
def test_a_head_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_head(text)) == text
