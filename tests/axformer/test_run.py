"""A pass from a checkpoint on disk to a model that loads where the old one did."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertTokenizer, pipeline

import axformer
import axformer.auto
from axformer.artifact import new_directory
from axformer.config import PassConfig, make_config
from axformer.data.columns import DataSource
from axformer.data.encoding import UNLABELLED
from axformer.data.reading import read_rows
from axformer.errors import ArtifactError, InputError
from axformer.forms.fresh import FreshPython, in_package
from axformer.forms.kinds import COMPACT, KINDS
from axformer.forms.selfcheck import self_check
from axformer.intake.checkpoint import load_checkpoint
from axformer.intake.dataset import prepare
from axformer.model.surgery import operate
from axformer.plan.plan import parse_plan_file, read_plan_file
from axformer.plan.trial import Trial, Verdict
from axformer.run import PruningRun
from axformer.scores.measured import measure
from axformer.wire.finetuning import FinetuneSettings
from tests.family_cases import Case, stock_model
from tests.forked import forked_interpreter
from tests.runs import open_run
from tests.tiny_families import tiny_family_tokenizer
from tests.tiny_models import (
    SPECIAL,
    WORDS,
    save_tiny_checkpoint,
    tagged_rows,
    tiny_config,
    tiny_model,
    tiny_rows,
    tiny_tokenizer,
    write_rows,
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path, data: Path) -> tuple[Path, PruningRun]:
    """A finished pass with hard attention accepted somewhere."""
    held_out = write_rows(tmp_path_factory.mktemp("test") / "test.jsonl", tiny_rows(20, seed=9))
    config = make_config("paper", {"attention_top_k": 3, "majority_fraction": 0.2})
    run = open_run(checkpoint, DataSource(str(data)), test=DataSource(str(held_out)), config=config)
    list(run.trials())
    directory = tmp_path_factory.mktemp("results") / "pruned"
    run.publish(directory)
    return directory, run


def test_a_result_holds_what_the_contract_names(published: tuple[Path, PruningRun]) -> None:
    directory, run = published
    assert sorted(path.name for path in directory.iterdir()) == [
        *("README.md", "model", "path.svg", "plan.json", "plan.svg", "report.html", "report.json"),
        *("run.json", "trace.jsonl"),
    ]
    assert not [path for path in directory.parent.iterdir() if path != directory], "drafts are gone"
    trace = [Trial.model_validate_json(line) for line in (directory / "trace.jsonl").read_text().splitlines()]
    assert trace == list(run.trace)
    assert {trial.verdict for trial in trace} == set(Verdict)


def test_the_plan_made_the_model(published: tuple[Path, PruningRun], checkpoint: Path) -> None:
    directory, run = published
    file = parse_plan_file((directory / "plan.json").read_text())
    assert file.plan == run.plan
    assert file.config == run.config.model_dump(mode="json")
    whole = load_checkpoint(checkpoint)
    assert file.source.sha256 == whole.sha256
    operate(whole.model, whole.architecture, file.plan)
    parameters = sum(part.numel() for part in whole.model.parameters())
    assert parameters == sum(part.numel() for part in axformer.load(directory).parameters())


def sides(report: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return report["base"], report["pruned"]


def test_the_report_holds_before_and_after(published: tuple[Path, PruningRun]) -> None:
    directory, run = published
    report = json.loads((directory / "report.json").read_text())
    assert report["base"]["validation"]["loss"] == pytest.approx(run.trace[0].loss, rel=1e-6)
    accepted = [trial for trial in run.trace if trial.verdict is Verdict.ACCEPT]
    assert report["pruned"]["validation"]["loss"] == pytest.approx(accepted[-1].loss, rel=1e-5)
    for model in (report["base"], report["pruned"]):
        low, high = model["test_intervals"]["loss"]
        assert low < model["test"]["loss"] < high
        assert (
            set(model["validation"]) == set(model["test"]) == {"loss", "accuracy", "matthews_correlation", "f1_macro"}
        )
        assert model["latency_ms"] > 0
    assert report["pruned"]["parameters"] < report["base"]["parameters"]
    for name in ("parameters", "operations"):
        whole, encoder = ([side[key] for side in sides(report)] for key in (name, f"encoder_{name}"))
        assert whole[0] - whole[1] == encoder[0] - encoder[1] > 0, "all that goes is of the encoder"
        points = [report["path"][0], next(point for point in report["path"] if point["kept"])]
        assert [point[f"encoder_{name}"] for point in points] == encoder
    assert report["one_position_ms"] > 0
    assert report["pruned"]["bytes"] == (directory / "model" / "model.safetensors").stat().st_size
    work, trace = report["work"], run.trace
    assert work["trials_by_precision"] == {"float32": len(trace)}
    assert work["decided_early"] == sum(trial.loss_is_bound for trial in trace)
    assert work["device_peak_bytes"] is None
    assert work["peak_bytes"] > report["base"]["bytes"]
    assert report["hard_attention"], "this pass is meant to accept hard attention"
    assert report["data"]["test"]["rows"] == 20
    for data in ("validation", "test"):
        comparison = report["comparison"][data]
        change = report["pruned"][data]["loss"] - report["base"][data]["loss"]
        assert comparison["differences"]["loss"]["value"] == pytest.approx(change)
        test, rows = comparison["mcnemar"], report["data"][data]["rows"]
        gain = report["pruned"][data]["accuracy"] - report["base"][data]["accuracy"]
        assert (test["gained"] - test["lost"]) / rows == pytest.approx(gain)


def test_it_loads_by_every_door(published: tuple[Path, PruningRun]) -> None:
    directory, run = published
    model, tokenizer = run.compact_model(), AutoTokenizer.from_pretrained(directory / "model")
    inputs = tokenizer([str(row["text"]) for row in tiny_rows(8, seed=5)], padding=True, return_tensors="pt")
    doors = [
        axformer.load(directory),
        axformer.load(directory / "model"),
        AutoModelForSequenceClassification.from_pretrained(directory / "model").eval(),
    ]
    with torch.inference_mode():
        expected = model(**inputs).logits
        assert all(torch.equal(door(**inputs).logits, expected) for door in doors)
    classify = pipeline("text-classification", model=str(directory / "model"))
    assert classify("word1 word2 word3")[0]["label"] in {"LABEL_0", "LABEL_1"}


def test_stock_transformers_refuses_it_by_name(published: tuple[Path, PruningRun], tmp_path: Path) -> None:
    model = str(published[0] / "model")
    code = f"from transformers import AutoModelForSequenceClassification as A; A.from_pretrained({model!r})"
    (tmp_path / "stock.py").write_text(code, encoding="utf-8")
    process = forked_interpreter(["-I", str(tmp_path / "stock.py")])
    assert process.returncode == 1
    assert "axformer-bert" in process.stderr


def test_the_card_is_honest_about_held_out_data(published: tuple[Path, PruningRun]) -> None:
    directory, run = published
    report = json.loads((directory / "report.json").read_text())
    fell = report["pruned"]["test"]["loss"] < report["base"]["test"]["loss"]
    compared = report["comparison"]["test"]
    low, high = compared["differences"]["loss"]["interval"]
    answers = compared["mcnemar"]
    are_worse = answers["lost"] > answers["gained"] and answers["p_value"] <= 0.05
    judged = "loss" if are_worse else "no_reliable_gain" if low <= 0 <= high else "gain" if fell else "loss"
    assert (report["finding"]["data"], report["finding"]["verdict"]) == ("test", judged)
    for file in ("README.md", "report.html"):
        assert report["finding"]["sentence"] in (directory / file).read_text()
    assert ("the loss did not fall" in (directory / "README.md").read_text()) is not fell
    assert run.plan.layers


def check_again(run: PruningRun, directory: Path) -> None:
    encoded = run._validation.samples.encoded
    self_check(
        run.compact_model(),
        tiny_tokenizer(),
        encoded,
        KINDS[COMPACT],
        directory,
        FreshPython(in_package(COMPACT)),
        pooled=True,
    )


def test_a_changed_file_is_found_before_it_is_published(published: tuple[Path, PruningRun], tmp_path: Path) -> None:
    _, run = published
    other = run.compact_model()
    other.classifier.bias.data += 1
    other.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ArtifactError, match=r"logits differ by 1\.00e\+00"):
        check_again(run, tmp_path)
    run.compact_model().save_pretrained(tmp_path)
    check_again(run, tmp_path)
    BertTokenizer(vocab={word: index for index, word in enumerate(SPECIAL + WORDS[::-1])}).save_pretrained(tmp_path)
    with pytest.raises(ArtifactError, match="the saved tokenizer reads token ids as other texts"):
        check_again(run, tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ArtifactError, match="does not load in a fresh process"):
        check_again(run, tmp_path)


def test_a_result_is_never_written_over_another(published: tuple[Path, PruningRun]) -> None:
    directory, run = published
    with pytest.raises(InputError, match="exists and is not empty"):
        run.publish(directory)
    assert axformer.load(directory) is not None


def test_a_result_that_fails_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def break_off() -> None:
        with new_directory(tmp_path / "deep" / "out") as draft:
            (draft / "plan.json").write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        break_off()
    assert list((tmp_path / "deep").iterdir()) == []


def test_what_is_no_compact_model_is_not_loaded(tmp_path: Path, checkpoint: Path) -> None:
    with pytest.raises(ArtifactError, match=r"there is no config\.json"):
        axformer.load(tmp_path)
    with pytest.raises(ArtifactError, match="is a model of type 'bert', not one that a pass made"):
        axformer.load(checkpoint)


def test_nothing_removed_is_a_result_too(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    config = make_config("paper", {"majority_fraction": 0.999, "attention_top_k": None})
    run = open_run(checkpoint, DataSource(str(data)), config=config)
    list(run.trials())
    report = run.publish(tmp_path / "same")
    assert report["removed"] == []
    assert report["base"]["validation"] == pytest.approx(report["pruned"]["validation"], rel=1e-5)
    assert "Nothing: no removal lowered the loss" in (tmp_path / "same" / "README.md").read_text()


def test_a_pass_to_a_target_within_a_tolerance_is_published_as_it_ended(
    tmp_path: Path, checkpoint: Path, data: Path
) -> None:
    config = make_config("paper", {"majority_fraction": 0.3, "tolerance": 0.2, "target_size": 0.9})
    run = open_run(checkpoint, DataSource(str(data)), config=config)
    trials = list(run.trials())
    report = run.publish(tmp_path / "pruned")
    assert report["trials"] == len(trials)
    assert report["pruned"]["parameters"] <= 0.9 * report["base"]["parameters"]
    assert report["pruned"]["validation"]["loss"] == pytest.approx(trials[-1].loss, rel=1e-5)
    assert trials[-1].loss < 1.2 * trials[0].loss
    card = (tmp_path / "pruned" / "README.md").read_text()
    assert "as long as that loss stayed below 1.2 times what it was before" in card


@pytest.mark.slow
def test_a_trained_result_tells_what_it_was_before_and_loads_as_any_other(
    tmp_path: Path, checkpoint: Path, data: Path
) -> None:
    lessons = DataSource(str(write_rows(tmp_path / "train.jsonl", tiny_rows(24, seed=8))))
    how = FinetuneSettings(epochs=3, learning_rate=1e-3, batch_size=8)
    plain = open_run(checkpoint, DataSource(str(data)))
    trained = open_run(checkpoint, DataSource(str(data)), train=lessons, finetune=how)
    assert [trial.verdict for trial in trained.trials()] == [trial.verdict for trial in plain.trials()]
    before, after = plain.publish(tmp_path / "plain"), trained.publish(tmp_path / "trained")
    assert before["finetune"] is None
    told = after["finetune"]
    assert told["before"]["validation"] == pytest.approx(before["pruned"]["validation"], rel=1e-6)
    assert (told["settings"], told["data"]["rows"]) == (how.model_dump(mode="json"), 24)
    assert after["pruned"]["validation"]["loss"] != pytest.approx(before["pruned"]["validation"]["loss"], rel=1e-4)
    assert after["pruned"]["parameters"] == before["pruned"]["parameters"]
    plans = [read_plan_file(tmp_path / name) for name in ("plain", "trained")]
    assert [plan.trained for plan in plans] == [False, True]
    assert (plans[0].plan, plans[0].config) == (plans[1].plan, plans[1].config)
    assert "Then it was trained on 24 rows (3 epochs)" in (tmp_path / "trained" / "README.md").read_text()
    loaded = axformer.load(tmp_path / "trained").state_dict()
    again = open_run(checkpoint, DataSource(str(data)), train=lessons, finetune=how)
    list(again.trials())
    again.publish(tmp_path / "again")
    assert all(
        torch.equal(value, loaded[name]) for name, value in axformer.load(tmp_path / "again").state_dict().items()
    )


def test_what_was_measured_already_is_what_would_be_measured_again(
    tmp_path: Path, checkpoint: Path, data: Path
) -> None:
    config = PassConfig(majority_fraction=0.2)
    looked, not_looked = (open_run(checkpoint, DataSource(str(data)), config=config) for _ in range(2))
    looked.look()
    list(looked.trials())
    list(not_looked.trials())
    with_look, without = looked.publish(tmp_path / "looked"), not_looked.publish(tmp_path / "not")
    for side in ("base", "pruned"):
        for figures in ("validation", "validation_intervals"):
            assert with_look[side][figures] == without[side][figures]
    assert with_look["comparison"] == without["comparison"]
    small, whole = axformer.load(tmp_path / "looked"), load_checkpoint(checkpoint)
    assert with_look["pruned"]["validation"] == pytest.approx(
        measure(small, whole.task, prepare(read_rows(str(data)), whole, config).samples).figures, rel=1e-6
    )


@pytest.mark.slow
def test_a_regression_goes_the_same_way(tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "checkpoint", tiny_config(labels=1))
    data = write_rows(tmp_path / "data.jsonl", tiny_rows(30, pairs=True, labels=1))
    run = open_run(checkpoint, DataSource(str(data)), config=PassConfig(majority_fraction=0.2))
    list(run.trials())
    report = run.publish(tmp_path / "pruned")
    assert set(report["pruned"]["validation"]) == {"loss", "pearson", "spearman"}
    assert report["pruned"]["validation"]["loss"] < report["base"]["validation"]["loss"]


def test_prune_in_memory_leaves_the_model_alone() -> None:
    model = tiny_model()
    model.config._attn_implementation = "sdpa"
    before = {name: part.clone() for name, part in model.state_dict().items()}
    result = axformer.prune(model, tiny_tokenizer(), tiny_rows(30), PassConfig(majority_fraction=0.2))
    assert all(torch.equal(before[name], part) for name, part in model.state_dict().items())
    assert model.config._attn_implementation == "sdpa"
    assert result.model.num_parameters() < model.num_parameters()
    assert len(result.trace) >= 10
    assert not result.model.training


def test_notes_and_record_of_training_rows_are_those_of_other_rows(tmp_path: Path) -> None:
    case = Case("bert", "token_classification")
    stock_model(case).save_pretrained(tmp_path / "checkpoint")
    tiny_family_tokenizer(case.family).save_pretrained(tmp_path / "checkpoint")
    rows = tagged_rows(20, ["LABEL_0", "LABEL_1", "LABEL_2"])
    validation = DataSource(str(write_rows(tmp_path / "validation.jsonl", rows)))
    untagged = [row | {"tags": [UNLABELLED] * len(row["tags"])} for row in rows[:5]]  # type: ignore[arg-type]
    more = DataSource(str(write_rows(tmp_path / "more.jsonl", [*untagged, *rows[5:]])))
    config = make_config("paper", {"method": "layers", "drop": 1, "max_length": 8})
    run = open_run(tmp_path / "checkpoint", validation, test=more, config=config, train=more)
    told = [note.removeprefix("train data: ") for note in run.notes if note.startswith("train")]
    *same, shared = (note.removeprefix("test data: ") for note in run.notes if note.startswith("test"))
    assert told == same
    assert "15 are also among the rows that decide and 15 are also among the training rows" in shared
    assert "5 rows have no word with a tag and are left out, the first is 1" in told
    for _ in run.trials():
        pass
    report = run.publish(tmp_path / "result")
    for figure in ("rows", "cut", "sha256"):
        assert report["finetune"]["data"][figure] == report["data"]["test"][figure]
    assert report["finetune"]["data"]["rows"] == 15
