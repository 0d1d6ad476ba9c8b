"""The model card: metadata that model hubs read, and the first lines for who reads no further."""

from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt

from axformer.config import config_class
from axformer.forms.kinds import HUB, ONNX, seen_from
from axformer.plan.elements import Dimensions
from axformer.plan.plan import PlanFile, read_plan_file
from axformer.reporting.card import write_card
from axformer.reporting.card_forms import Loading
from axformer.reporting.card_metadata import metadata, name_of_model, plain_name
from axformer.reporting.deploy_table import deployables
from axformer.reporting.deployable import TITLES
from axformer.reporting.rendering import passage_from
from axformer.wire.references import shown_name
from axformer.wire.report import ClassChange, FormReport, Report
from tests.hostile.names import NAMES

LOADING = Loading("text-classification", 'predict = pipeline("text-classification", model="model")', "AutoModel")
GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HOSTILE = 'x"\n---\nlicense: mit\n# <script>`'


@pytest.fixture(scope="module")
def report(result: Path) -> Report:
    return Report.model_validate_json((result / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def plan(result: Path) -> PlanFile:
    return read_plan_file(result)


@pytest.fixture(scope="module")
def card(result: Path) -> ModelCard:
    """The card as model hubs read it, which refuse metadata that is not theirs."""
    return ModelCard.load(result / "README.md")


def test_a_hub_reads_every_held_out_figure_of_the_report(card: ModelCard, report: Report) -> None:
    assert report.pruned.test is not None
    assert (card.data.library_name, card.data.pipeline_tag) == ("axformer", "text-classification")
    results = card.data.eval_results
    assert {result.dataset_name for result in results} == {"validation.jsonl"}
    compact = {result.metric_type: result.metric_value for result in results if "," not in result.metric_name}
    names = {"loss": "loss", "accuracy": "accuracy", "matthews_correlation": "matthews_correlation", "f1_macro": "f1"}
    assert compact == {names[name]: value for name, value in report.pruned.test.items()}
    others = {result.metric_name: result.metric_value for result in results if "," in result.metric_name}
    assert others == {
        f"accuracy, {TITLES[form.name]}": form.test["accuracy"]
        for form in report.forms
        if form.name != "compact" and form.test is not None
    }
    assert others


def test_inside_a_directory_the_card_names_what_lies_there(report: Report, plan: PlanFile) -> None:
    graph = report.forms[0].model_copy(update={"name": ONNX, "directory": HUB})
    with_graph = report.model_copy(update={"forms": [*report.forms, graph]})
    text = write_card(with_graph, plan, Dimensions(3, 4, 16, 64), LOADING, inside=HUB)
    assert 'InferenceSession("onnx/model.onnx")' in text
    assert 'AutoTokenizer.from_pretrained(".")' in text
    assert "### Compact" not in text
    assert "hub/onnx" not in text
    found = ModelCard(text).data
    assert (found.library_name, [result.metric_name for result in found.eval_results]) == ("onnx", ["accuracy, ONNX"])


@pytest.mark.parametrize(
    ("place", "inside", "seen"),
    [
        ("hub/onnx/model.onnx", "", "hub/onnx/model.onnx"),
        ("hub/onnx/model.onnx", HUB, "onnx/model.onnx"),
        ("model/", HUB, "model/ of the result"),
        ("model/", "", "model/"),
    ],
)
def test_a_place_is_named_as_its_reader_sees_it(place: str, inside: str, seen: str) -> None:
    assert seen_from(place, inside) == seen


def test_references_to_a_hub_become_its_ids_and_other_places_do_not(report: Report) -> None:
    names = {
        "checkpoint": "hf://acme/reviews",
        "validation": "hf://datasets/acme/rows/dev.jsonl",
        "test": "hf://datasets/acme/rows/test.jsonl",
        "train": "rows.jsonl",
    }
    found = ModelCard(f"---\n{metadata(report.model_copy(update={'names': names}), LOADING)}\n---\n").data
    assert (found.base_model, found.datasets) == ("acme/reviews", ["acme/rows"])
    assert {result.dataset_type for result in found.eval_results} == {"acme/rows"}
    local = ModelCard(f"---\n{metadata(report, LOADING)}\n---\n").data
    assert (local.base_model, local.datasets) == (None, None)


def test_without_held_out_data_nothing_is_claimed_to_a_hub(report: Report) -> None:
    pruned = report.pruned.model_copy(update={"test": None, "test_intervals": None})
    forms = [form.model_copy(update={"test": None}) for form in report.forms]
    found = ModelCard(f"---\n{metadata(report.model_copy(update={'pruned': pruned, 'forms': forms}), LOADING)}\n---\n")
    assert found.data.eval_results is None
    assert "model-index" not in found.data.to_dict()


def test_the_title_tells_the_result_and_five_lines_follow(card: ModelCard, report: Report) -> None:
    found = deployables(report.model_dump(mode="json"))
    assert found is not None
    title, *lines = [line for line in card.text.splitlines() if line][:6]
    name = name_of_model(report)
    best = found.best
    if best is None:
        assert title == f"# {name}: no form is shown to be both faster and as good"
    else:
        assert title.startswith(f"# {name}: {best.times:.1f} times as fast ({best.title}), held-out accuracy ")
    assert [line.split("**")[1] for line in lines] == [
        *("What it is.", "What to deploy.", "Is it as good?", "How sure.", "How it was made."),
    ]
    assert found.sentence in lines[1]


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"method": "layers"}, "no smaller model was accepted"),
        ({"method": "rank", "relative": 0.9}, "no smaller model was accepted"),
        (
            {"majority_fraction": 0.5},
            "no removal lowered the loss and helped more than half of the validation samples",
        ),
        (
            {"majority_fraction": 0.2},
            "no removal lowered the loss and helped more than 20% of the validation samples",
        ),
        ({"majority_fraction": 0.5, "tolerance": 0.1}, "no removal kept the loss within what was allowed"),
    ],
)
def test_why_nothing_was_removed_is_told_by_the_rule_that_there_was(config: dict[str, Any], told: str) -> None:
    assert passage_from(config_class(config).about.nothing_met, config=config) == told


def hostile(report: Report, plan: PlanFile, name: str) -> str:
    """The card of a report in which whatever comes from outside has a name."""
    data, checked = report.data["validation"], report.comparison["test"]
    assert data is not None
    assert checked is not None
    lost = ClassChange(name=name, count=9, before=0.9, after=0.1, p_value=0.001)
    forms = [
        form.model_copy(update={"cost": checked.model_copy(update={"classes": [lost]}), "judgement": None})
        for form in report.forms
    ]
    named = report.model_copy(
        update={
            "names": dict.fromkeys(("checkpoint", "validation", "test"), name),
            "data": {**report.data, "validation": data.model_copy(update={"shares": {name: 0.6, "b": 0.4}})},
            "notes": [f"the column {name[:80]} is empty"],
            "doubt": f"the class {name[:40]} is missing",
            "forms": [*forms, FormReport(name="onnx", made=False, reason=name)],
            "environment": {**report.environment, "device": name},
            "finding": report.finding and report.finding.model_copy(update={"sentence": f"{name[:80]} is better"}),
        }
    )
    source = plan.source.model_copy(update={"model_type": name})
    return write_card(named, plan.model_copy(update={"source": source}), Dimensions(3, 4, 16, 64), LOADING)


def structure(text: str) -> list[str]:
    """What a reader of Markdown sees but for the words: headings, lists, tables, links with their targets, HTML."""
    flat = (inner for block in GITHUB.parse(text) for inner in (block, *(block.children or ())))
    return [
        f"{token.type} {token.attrs.get('href', '')}{token.attrs.get('src', '')}"
        for token in flat
        if token.type != "text"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_names_from_outside_write_no_metadata_and_no_markup(report: Report, plan: PlanFile, name: str) -> None:
    text = hostile(report, plan, name)
    assert ModelCard(text).data.license is None
    assert structure(ModelCard(text).text) == structure(ModelCard(hostile(report, plan, "harmless")).text)
    assert "\x1b" not in text
    assert "x" * 90 not in text.partition("## Limits")[0]


def test_a_name_of_a_file_is_plain_where_hubs_read_it(report: Report) -> None:
    named = report.model_copy(update={"names": dict.fromkeys(("checkpoint", "validation", "test"), HOSTILE)})
    found = ModelCard(f"---\n{metadata(named, LOADING)}\n---\n").data
    assert plain_name(HOSTILE) in {result.dataset_name for result in found.eval_results}


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("hf://acme/reviews", "hf://acme/reviews"),
        ("s3://bucket/rows/dev.jsonl", "dev.jsonl"),
        ("https://host/rows/dev.jsonl?token=secret#part", "dev.jsonl"),
        ("https://host/model/", "model"),
        ("some/where/dev.jsonl", "dev.jsonl"),
        ("some/reviews/checkpoint-500", "reviews"),
        ("some/reviews/model", "reviews"),
        (".", Path().resolve().name),
    ],
)
def test_the_name_of_an_input_tells_no_place_and_no_secret(reference: str, name: str) -> None:
    assert shown_name(reference) == name
