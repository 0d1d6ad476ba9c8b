"""``report.html`` says what ``report.json`` says, alone, and takes nothing that it is given for HTML."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from axformer.config import PassConfig
from axformer.plan.elements import Dimensions
from axformer.plan.plan import PlanFile, read_plan_file
from axformer.plan.trial import Trial, Verdict
from axformer.reporting.card_forms import Loading
from axformer.reporting.page import PAGE, report_page
from axformer.wire.report import Report
from tests.hostile.names import NAMES

pytestmark = pytest.mark.slow
"""Every form is made, ONNX among them."""

VOID = {"meta", "br", "link", "img", "input", "hr"}
LOADING = Loading("text-classification", 'predict = pipeline("text-classification", model="model")', "AutoModel")
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&amp;{{ 7 * 7 }}"


class Page(HTMLParser):
    """What is on a page: its text, its tags with their attributes, and whether all of them are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page(every_form: Path) -> Page:
    return Page((every_form / PAGE).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def report(every_form: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((every_form / "report.json").read_text(encoding="utf-8"))
    return content


def trace_of(every_form: Path) -> list[Trial]:
    return [Trial.model_validate_json(line) for line in (every_form / "trace.jsonl").read_text().splitlines()]


def figures_of(report: dict[str, Any]) -> Iterator[str]:
    """What a reader of ``report.json`` would look for on the page, as it is written there."""
    for model in (report["base"], report["pruned"]):
        for data in ("validation", "test"):
            for name, value in model[data].items():
                low, high = model[f"{data}_intervals"][name]
                yield f"{value:.4f} [{low:.4f}, {high:.4f}]"
        yield from (f"{model['parameters']:,}", f"{model['bytes'] / 1e6:.1f}", f"{model['latency_ms']:.2f}")
        yield from (f"{model['encoder_parameters']:,}", f"{model['encoder_operations'] / 1e6:,.1f}")
    yield f"latency by pruning alone, ms {report['one_position_ms']:.2f} {report['pruned']['latency_ms']:.2f}"
    yield "The compact and the ONNX forms compute the last layer at one position"
    free = report["one_position_ms"] / report["base"]["latency_ms"] - 1
    yield f"of which {free:+.1%} by computing the last layer at one position, which removes nothing"
    for comparison in report["comparison"].values():
        for change in comparison["differences"].values():
            low, high = change["interval"]
            yield f"{change['value']:+.4f} [{low:+.4f}, {high:+.4f}]"
    for form in (report["base_form"], *(form for form in report["forms"] if form["made"])):
        yield f"{form['bytes'] / 1e6:.1f}"
        if form["load_seconds"] is not None:
            yield f"{form['load_seconds']:.2f}"
            yield f"{form['peak_bytes'] / 1e6:.0f}"
        yield from (f"{cell['p50_ms']:.2f} ({cell['p95_ms']:.2f})" for cell in form["speed"])
    yield from (f"{name} {json.dumps(value)}" for name, value in report["config"].items())
    yield from (f"{data['rows']:,}" for data in report["data"].values())
    yield from (data["sha256"] for data in report["data"].values())
    yield from (str(value) for value in report["environment"].values() if value is not None)
    yield f"{report['trials']:,} trials"
    yield f"{report['estimated_speedup']:.2f} times as fast"


def test_every_figure_of_the_report_is_on_the_page(page: Page, report: dict[str, Any]) -> None:
    figures = list(figures_of(report))
    assert len(figures) > 90
    assert [figure for figure in figures if figure not in page.text] == []


def test_every_accepted_element_and_every_form_is_on_the_page(
    page: Page, every_form: Path, report: dict[str, Any]
) -> None:
    accepted = [trial for trial in trace_of(every_form) if trial.verdict is Verdict.ACCEPT]
    assert accepted
    for trial in accepted:
        row = f"{trial.seq} {trial.element} {trial.min_loss:.4f} {trial.loss:.4f} {trial.helped:,} of {trial.total:,}"
        assert row in page.text
    for form in report["forms"]:
        assert (f"{form['directory']}/" if form["made"] else form["reason"]) in page.text
    assert [tag for tag, _ in page.tags].count("svg") == 3  # the trials, the path, the plan


def test_the_page_stands_alone(page: Page, every_form: Path) -> None:
    assert "script" not in {tag for tag, _ in page.tags}
    fetched = [attributes.get(name) for _, attributes in page.tags for name in ("src", "href", "data", "action")]
    assert all(target.startswith("#") for target in fetched if target is not None)
    html = (every_form / PAGE).read_text(encoding="utf-8")
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", html)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {target for target in fetched if target} == {f"#{id}" for id in ids if id and "-" not in id}
    assert f"`{PAGE}`" in (every_form / "README.md").read_text(encoding="utf-8")


def hostile(report: Report, name: str) -> Report:
    """The same report of a task, a machine, a knob, a metric and a form with dangerous names."""
    base, pruned = (
        model.model_copy(
            update={
                "validation": {**model.validation, name: 0.5},
                "validation_intervals": {**model.validation_intervals, name: (0.4, 0.6)},
            }
        )
        for model in (report.base, report.pruned)
    )
    compared = report.comparison["validation"]
    assert compared is not None
    differences = {**compared.differences, name: compared.differences["loss"]}
    *forms, last = report.forms
    return report.model_copy(
        update={
            "task": name,
            "base": base,
            "pruned": pruned,
            "comparison": {**report.comparison, "validation": compared.model_copy(update={"differences": differences})},
            "environment": {**report.environment, "device": name},
            "config": {**report.config, "explicit_order": [name]},
            "forms": [*forms, last.model_copy(update={"made": False, "reason": name})],
        }
    )


def with_names(every_form: Path, name: str) -> Page:
    """The page of the same report in which whatever comes from outside has this name."""
    report = hostile(Report.model_validate_json((every_form / "report.json").read_text(encoding="utf-8")), name)
    plan = read_plan_file(every_form)
    named = plan.model_copy(update={"source": plan.source.model_copy(update={"model_type": name, "sha256": name})})
    trace, loading = trace_of(every_form), Loading(name, name, name)
    return Page(report_page(report, named, dimensions_of(plan), trace, loading))


def test_dangerous_names_stay_text(every_form: Path) -> None:
    harmless, found = with_names(every_form, "harmless"), with_names(every_form, HOSTILE)
    assert found.tags == harmless.tags
    assert found.text.count("alert('x')") >= 6
    assert "{{ 7 * 7 }}" in found.text
    for name in NAMES:
        assert [tag for tag, _ in with_names(every_form, name).tags] == [tag for tag, _ in harmless.tags]


def dimensions_of(plan: PlanFile) -> Dimensions:
    """Of a tiny model with this many layers; no test looks at the picture's own figures."""
    return Dimensions(len(plan.layers), 4, 32, 48)


def test_reports_of_earlier_versions_are_shown_without_what_they_lack(every_form: Path) -> None:
    told = json.loads((every_form / "report.json").read_text(encoding="utf-8"))
    del told["one_position_ms"]
    for one in (told["base"], told["pruned"], *told["path"]):
        del one["encoder_parameters"], one["encoder_operations"]
    plan = read_plan_file(every_form)
    report = Report.model_validate(told)
    shown = Page(report_page(report, plan, dimensions_of(plan), trace_of(every_form), LOADING)).text
    assert f"parameters {report.base.parameters:,}" in shown
    assert all(words not in shown for words in ("parameters of the encoder", "by pruning alone", "at one position"))


def test_a_pass_that_found_nothing_says_so(every_form: Path) -> None:
    report = Report.model_validate_json((every_form / "report.json").read_text(encoding="utf-8"))
    whole = PlanFile(
        source=read_plan_file(every_form).source,
        config=PassConfig().model_dump(mode="json"),
        layers=read_plan_file(every_form).layers,
    )
    rejected = [trial for trial in trace_of(every_form) if trial.verdict is not Verdict.ACCEPT]
    assert (
        "Nothing: no trial met the condition."
        in Page(report_page(report, whole, dimensions_of(whole), rejected, LOADING)).text
    )
