"""An analysis from beginning to end: for every task, whole or not at all, with commands that work."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jsonschema import Draft202012Validator
from transformers import BertForSequenceClassification
from typer.testing import CliRunner

import axformer
from axformer.analysis.advice import Given
from axformer.analysis.heads import Heads, heads_report
from axformer.analysis.inputs import REPORTS, AnalysisInputs, WantedReports
from axformer.analysis.making import study_of
from axformer.analysis.probes import fit
from axformer.analysis.probing import Probing, places_of, scores_of
from axformer.analysis.study import Guessing, ReportBounds
from axformer.analyzing import carry_out, open_analysis, write_analysis
from axformer.cli.main import app
from axformer.data.columns import DataSource
from axformer.errors import AxFormerError, DataError
from axformer.opening import Inputs, check_fits
from axformer.run import PruningRun
from axformer.surroundings import Surroundings
from axformer.wire.analysis import Analysis, Kept
from axformer.wire.steps import Step, StepName
from tests.axformer.analysis.commands import config_of, parsed
from tests.family_cases import CONFIG, Case, all_cases, checkpoint_of, data_of
from tests.schemas import analysis_schema_text
from tests.tiny_models import (
    answered_rows,
    answering_model,
    save_tiny_checkpoint,
    tiny_config,
    tiny_rows,
    tiny_tokenizer,
    write_rows,
)

CASES = [case for case in all_cases() if case.family == "bert"] + [
    Case("albert", "classification"),
    Case("deberta-v2", "classification"),
    Case("gpt2", "causal_lm"),
    Case("modernbert", "classification"),
    Case("xlnet", "token_classification"),
]


def inputs_of(case: Case) -> AnalysisInputs:
    checkpoint, data = checkpoint_of(case), data_of(case)
    given = Given("my model", "dev.jsonl", "train.jsonl", has_points="lm" not in case.task)
    return AnalysisInputs(
        checkpoint, data, data, checkpoint, CONFIG, given, {"checkpoint": "my model", "against": "itself"}
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_task_has_its_reports_and_commands_that_fit_the_model(case: Case, tmp_path: Path) -> None:
    steps: list[Step] = []
    inputs = inputs_of(case)
    analysis = carry_out(inputs, WantedReports(), Surroundings(on_step=steps.append))
    made = {name for name in REPORTS if getattr(analysis.reports, name) is not None}
    unprobed = case.task in ("question_answering", "multiple_choice", "masked_lm", "causal_lm")
    assert made == set(REPORTS) - ({"features"} if unprobed else set())
    assert {StepName.REPRESENTING, StepName.IMPORTANCE, StepName.DRIFT, StepName.CLUSTERING} <= {
        step.name for step in steps
    }
    for name in made:
        advice = getattr(analysis.reports, name).advice
        assert advice.sentence
        if not advice.command:
            continue
        arguments = parsed(advice.command)
        assert arguments["checkpoint"], arguments["data"] == ("my model", "dev.jsonl")
        assert arguments["command"] == "prune"
        config = config_of(arguments)
        check_fits(config, inputs.checkpoint, None)
        PruningRun(Inputs(inputs.checkpoint, inputs.data), config.model_copy(update={"confirm": 0.0}))
    layers = analysis.reports.layers
    assert layers is not None
    assert not (unprobed and "probes" in layers.advice.sentence), "nothing could be probed"
    write_analysis(analysis, tmp_path / "out")
    assert Analysis.model_validate_json((tmp_path / "out" / "analysis.json").read_text()) == analysis
    page = (tmp_path / "out" / "analysis.html").read_text()
    assert "my model" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_a_model_has_not_drifted_from_itself() -> None:
    drift = carry_out(inputs_of(Case("bert", "classification")), WantedReports(["drift"])).reports.drift
    assert drift is not None
    assert drift.recall is not None
    assert drift.cosine == pytest.approx([1.0] * len(drift.cosine))
    assert drift.distance == pytest.approx([0.0] * len(drift.distance))
    assert np.abs(drift.attention).max() < 1e-6
    assert drift.recall[0].recall == 1
    assert drift.recall[-1].recall == 0


def test_the_importance_of_a_layers_heads_sums_to_one_and_is_that_of_ranked_pruning() -> None:
    from contextlib import nullcontext

    from axformer.plan.blocks import Block, BlockKind
    from axformer.scores.importance import Ranked, owners_of, scores_of
    from axformer.scores.ranking import normalised

    inputs = inputs_of(Case("bert", "question_answering"))
    heads = carry_out(inputs, WantedReports(["heads"])).reports.heads
    assert heads is not None
    checkpoint, data = inputs.checkpoint, inputs.data
    ranked = Ranked(checkpoint, data.samples, nullcontext, 0.0, 0, owners_of(checkpoint))
    scores = normalised(scores_of("taylor", ranked), "l1")
    for layer, row in enumerate(heads.importance):
        assert sum(row) == pytest.approx(1)
        assert row == pytest.approx(scores[Block(layer, BlockKind.ATTENTION)], rel=1e-4)
    assert [kept.removed for kept in heads.curve][:: len(heads.curve) - 1] == [0.0, 1.0]


@pytest.mark.parametrize("has_points", [True, False])
def test_the_ranking_that_is_advised_keeps_what_it_is_said_to(has_points: bool) -> None:
    curve = tuple(Kept(removed=step / 10, metric=0.9, relative=1.0 if step < 5 else 0.5) for step in range(11))
    heads = Heads(np.full((2, 5), 0.2), curve, (), "accuracy", (200, 200), Guessing(0.5, 200))
    advice = heads_report(heads, 1.0, Given("my model", "dev.jsonl", has_points=has_points)).advice
    config = config_of(parsed(advice.command))
    assert config.within_points is None, "no model is certified"
    assert "certified" not in advice.sentence
    assert ("rows that do not rank" in advice.sentence) == (config.confirm > 0) == (not has_points)
    assert "Without 40 % of its heads" in advice.sentence


def test_where_the_first_tenth_of_heads_costs_too_much_no_command_takes_heads() -> None:
    curve = tuple(Kept(removed=step / 10, metric=0.9, relative=1.0 if step < 1 else 0.5) for step in range(11))
    heads = Heads(np.full((2, 5), 0.2), curve, (), "accuracy", (200, 200), Guessing(0.5, 200))
    advice = heads_report(heads, 1.0, Given("my model", "dev.jsonl")).advice
    assert advice.command == ""
    assert "already has less than 90 %" in advice.sentence


def test_what_is_bounded_is_said_and_the_same_each_time(tmp_path: Path) -> None:
    inputs = inputs_of(Case("bert", "token_classification"))
    bounds = ReportBounds(positions=30, design_bytes=4 * 10 * 200, dimensions=50)
    studies = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        studies.append(study_of(inputs, bounds, 0, tmp_path / name, Surroundings()))
    one, two = studies
    assert one.data.states.positions <= 30
    assert np.array_equal(one.data.states.states, two.data.states.states)
    analysis = carry_out(inputs, WantedReports(["cka"], rows=5))
    assert analysis.data["data"].rows == 5
    assert "data: 5 of 10 rows, drawn at random" in analysis.notes


@pytest.mark.parametrize("layers", [1, 2])
def test_probes_on_few_dimensions_learn_from_no_more_positions_than_the_one_on_all(layers: int, tmp_path: Path) -> None:
    inputs = inputs_of(Case("bert", "token_classification"))
    study = study_of(inputs, ReportBounds(design_bytes=4 * 10 * 200), 0, tmp_path, Surroundings())
    assert study.train is not None
    assert study.train.labels is not None
    states, dimensions = study.train.states, range(layers * study.train.states.hidden)
    places = places_of(states, study.bounds, 0)
    assert len(places) == 4 * 10 * 200 // (4 * states.dimensions) < states.positions
    probe = fit(states.columns(dimensions, places), study.train.labels.at(places), 0)
    assert np.array_equal(
        Probing(study).of_layers(range(layers)).scores, scores_of(probe.linear, study.data.states, dimensions)
    )


SCHEMA = Path(__file__).parents[3] / "docs" / "analysis.schema.json"


def test_an_analysis_fits_the_published_schema() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == analysis_schema_text(), (
        "write it again: python -m tests.schemas analysis > docs/analysis.schema.json"
    )
    validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    analysis = carry_out(inputs_of(Case("bert", "classification")), WantedReports())
    validator.validate(json.loads(analysis.model_dump_json()))


def test_on_the_service_its_commands_post_jobs() -> None:
    inputs = inputs_of(Case("bert", "classification"))
    given = Given("upload:upl_1", "s3://acme/dev.csv", "upload:upl_2", "text=review", on_service=True)
    reports = carry_out(replace(inputs, given=given), WantedReports()).reports
    written = [getattr(reports, name).advice.command for name in REPORTS]
    commands = [parsed(command) for command in written if command]
    assert {arguments["command"] for arguments in commands} <= {"submit"}
    for arguments in commands:
        assert (arguments["checkpoint"], arguments["data"]) == ("upload:upl_1", "s3://acme/dev.csv")
        if arguments["command"] == "submit":
            config_of(arguments)


class StoppedError(Exception):
    """Ends an analysis."""


def test_it_ends_when_it_is_told_to() -> None:
    def stop() -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        carry_out(inputs_of(Case("bert", "classification")), WantedReports(["cka"]), Surroundings(check_cancelled=stop))


@pytest.mark.parametrize(
    ("case", "wanted", "message"),
    [
        ("classification", WantedReports(["layer"]), "did you mean layers"),
        ("classification", WantedReports(rows=1), "at least 2 rows"),
        ("question_answering", WantedReports(["features"]), "--report features: question answering has no labels"),
    ],
)
def test_what_cannot_be_is_refused(case: str, wanted: WantedReports, message: str) -> None:
    with pytest.raises(AxFormerError, match=message):
        carry_out(inputs_of(Case("bert", case)), wanted)


def test_in_memory() -> None:
    model, tokenizer = answering_model(2), tiny_tokenizer()
    before = {name: values.clone() for name, values in model.state_dict().items()}
    rows = answered_rows(model, 80, [0, 1])
    analysis = axformer.analyze(model, tokenizer, rows[:40], train=rows[40:], reports=["layers", "features"])
    layers = analysis.reports.layers
    assert layers is not None
    assert layers.probes is not None
    assert layers.probes.model == 1.0
    assert layers.probes.by_layer[-1] > layers.probes.guess
    assert analysis.reports.heads is None
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())


def test_copies_of_a_row_prove_nothing_of_early_exits() -> None:
    model, tokenizer = answering_model(2), tiny_tokenizer()
    rows = answered_rows(model, 300, [0, 1])
    data, train = rows[:150], rows[150:]
    found = []
    for measuring in (data, [*data, *data]):
        layers = axformer.analyze(model, tokenizer, measuring, train=train, reports=["layers"]).reports.layers
        assert layers is not None
        assert layers.probes is not None
        found.append(layers.probes.early)
    assert found[0] == found[1] != ()


def test_rows_of_one_class_are_refused_only_where_something_is_probed() -> None:
    rows = [row | {"label": 0} for row in tiny_rows(12)]
    analysis = axformer.analyze(answering_model(2), tiny_tokenizer(), rows)
    made = {name for name in REPORTS if getattr(analysis.reports, name) is not None}
    assert made == {"layers", "cka", "clusters", "heads"}
    with pytest.raises(DataError, match=r"only one class, .*from which no probe can learn"):
        axformer.analyze(answering_model(2), tiny_tokenizer(), rows, train=tiny_rows(12))


def test_it_is_told_where_probes_learn_from_the_rows_that_measure() -> None:
    rows = tiny_rows(20)
    told = axformer.analyze(answering_model(2), tiny_tokenizer(), rows, train=rows, reports=["layers"]).notes
    assert any(note.startswith("data: of its 20 rows 20 are also among the training rows") for note in told)
    others = axformer.analyze(
        answering_model(2), tiny_tokenizer(), rows, train=tiny_rows(20, seed=9), reports=["layers"]
    )
    assert not any("also among" in note for note in others.notes)


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_writes_everything_or_nothing(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    train = write_rows(tmp_path / "train.jsonl", tiny_rows(30, seed=3))
    output = tmp_path / "analysis"
    asked = ("analyze", checkpoint, "--data", data, "--train", train, "--output", output)
    ran = command(*asked, "--report", "layers,heads")
    assert ran.exit_code == 0, ran.output
    assert sorted(path.name for path in output.iterdir()) == ["analysis.html", "analysis.json", "ranking.jsonl"]
    ranking = [json.loads(line) for line in (output / "ranking.jsonl").read_text().splitlines()]
    assert [line["rank"] for line in ranking] == list(range(12))
    assert [line["score"] for line in ranking] == sorted(line["score"] for line in ranking)
    commands = [finding.advice.command for finding in _findings(output)]
    assert all(command in ran.output.replace("\n", "") for command in commands if command)
    again = command(*asked)
    assert again.exit_code == 2
    assert "is not empty" in again.output
    other = command("analyze", checkpoint, "--data", data, "--output", tmp_path / "no", "--report", "features")
    assert other.exit_code == 2
    assert "give --train" in other.output.replace("\n", " ")
    assert not (tmp_path / "no").exists()


def _findings(output: Path) -> list[Any]:
    reports = Analysis.model_validate_json((output / "analysis.json").read_text()).reports
    return [report for name in REPORTS if (report := getattr(reports, name)) is not None]


def test_the_model_that_a_checkpoint_was_trained_from_may_have_no_head(
    checkpoint: Path, data: Path, tmp_path: Path
) -> None:
    bare = BertForSequenceClassification.from_pretrained(checkpoint).base_model
    bare.save_pretrained(tmp_path / "bare")
    tiny_tokenizer().save_pretrained(tmp_path / "bare")
    ran = command(
        *("analyze", checkpoint, "--data", data, "--against", tmp_path / "bare"),
        *("--report", "drift", "--output", tmp_path / "out"),
    )
    assert ran.exit_code == 0, ran.output
    analysis = Analysis.model_validate_json((tmp_path / "out" / "analysis.json").read_text())
    assert analysis.reports.drift is not None
    assert analysis.reports.drift.cosine == pytest.approx([1.0] * 4)
    assert analysis.reports.drift.recall is None
    assert analysis.notes == ("drift: no recall of important heads, since the other model has no head",)


@pytest.mark.parametrize(("task", "can_read"), [("classification", True), ("question_answering", False)])
def test_a_language_model_ranks_its_heads_on_the_same_texts(task: str, can_read: bool, tmp_path: Path) -> None:
    inputs = inputs_of(Case("bert", task))
    language_model = checkpoint_of(Case("bert", "masked_lm"))
    analysis = carry_out(replace(inputs, against=language_model), WantedReports(["drift"]))
    assert analysis.reports.drift is not None
    recall = analysis.reports.drift.recall
    assert (recall is None) != can_read
    if recall is None:
        assert "which reads texts, cannot read these rows" in " ".join(analysis.notes)
    else:
        assert (recall[0].recall, recall[-1].recall) == (1, 0)


def test_models_that_do_not_compare_are_refused(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    other = save_tiny_checkpoint(tmp_path / "other", tiny_config(layers=2))
    ran = command("analyze", checkpoint, "--data", data, "--against", other, "--output", tmp_path / "out")
    assert ran.exit_code == 2
    assert "give the model that the checkpoint was trained from" in ran.output.replace("\n", " ")


def test_a_model_of_other_classes_has_no_recall_and_a_note_says_why(tmp_path: Path) -> None:
    def named(name: str, *classes: str) -> Path:
        config = tiny_config()
        config.id2label, config.label2id = dict(enumerate(classes)), {one: at for at, one in enumerate(classes)}
        return save_tiny_checkpoint(tmp_path / name, config)

    rows = [row | {"label": ("bad", "good")[index % 2]} for index, row in enumerate(tiny_rows(10))]
    data = write_rows(tmp_path / "data.jsonl", rows)
    own, other = named("own", "bad", "good"), named("other", "spam", "ham")
    inputs = open_analysis(Given(str(own), str(data)), DataSource(str(data)), None, str(other), "cpu")
    analysis = carry_out(inputs, WantedReports(["drift"]))
    assert analysis.reports.drift is not None
    assert analysis.reports.drift.recall is None
    assert analysis.notes == (
        "drift: no recall of important heads, since these rows have labels that the other model does not know",
    )


def test_finished_reports_are_taken_over_with_their_notes(tmp_path: Path) -> None:
    inputs = inputs_of(Case("bert", "question_answering"))
    whole = carry_out(inputs, WantedReports(["heads", "cka"]), Surroundings(tmp_path))
    steps: list[Step] = []
    again = carry_out(inputs, WantedReports(["heads", "cka"]), Surroundings(tmp_path, steps.append))
    assert again.reports == whole.reports  # their times, too
    assert {step.name for step in steps} == {StepName.REPRESENTING}
