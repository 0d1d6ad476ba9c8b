"""An analysis on a worker is the library's, has no trials, and goes on from its finished reports."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from axformer.analysis.advice import Given
from axformer.analysis.inputs import WantedReports
from axformer.analyzing import carry_out, open_analysis
from axformer.data.columns import DataSource
from axformer.wire.analysis import Analysis
from axformer.wire.provenance import PROVENANCE
from axformer.wire.states import JobKind
from store.repositories.steering import request_cancel, request_pause, resume_job, retry_job
from store.session import session_scope
from store.states import JobState
from tests.tiny_models import save_tiny_checkpoint, tiny_config, tiny_rows, write_rows
from tests.worker.conftest import Open, Post, Watch
from tests.worker.job.test_runner import NEVER, Claim, artifacts_of, content_of, left_behind
from worker.base.context import WorkerContext
from worker.base.packing import ARCHIVE_NAME
from worker.job.runner import run_job

TIMES = {"seconds", "peak_bytes", "environment"}


@pytest.fixture
def analysis(post: Post, opened: Open) -> Callable[..., str]:
    """Posts an analysis of the tiny checkpoint, with some fields changed."""

    def make(reports: list[str] | None = None, rows: int | None = None, **changes: Any) -> str:
        plain = {"train": {"uri": opened.uri("train.jsonl")}, "against": {"uri": opened.uri("checkpoint")}, "forms": []}
        plain |= {"kind": JobKind.ANALYSIS, "analysis": {"reports": reports, "rows": rows}}
        return post(**plain | {"config": {"max_length": None}} | changes)

    return make


def untimed(value: Any) -> Any:
    """Everything that an analysis says but how long it took and where."""
    if isinstance(value, dict):
        return {name: untimed(one) for name, one in value.items() if name not in TIMES}
    return [untimed(one) for one in value] if isinstance(value, list | tuple) else value


def result_of(context: WorkerContext, job_id: str) -> dict[str, Any]:
    return json.loads(content_of(context, artifacts_of(context, job_id)["analysis.json"]))  # type: ignore[no-any-return]


def of_the_library(opened: Open, wanted: WantedReports) -> Analysis:
    validation, train = (str(opened.root / f"{name}.jsonl") for name in ("validation", "train"))
    given = Given(str(opened.root / "checkpoint"), validation, train)
    inputs = open_analysis(given, DataSource(validation), DataSource(train), given.checkpoint, "cpu")
    return carry_out(inputs, wanted)


@contextmanager
def after(context: WorkerContext, watch: Watch, job_id: str, report: str, act: Callable[[], None]) -> Iterator[None]:
    """Act as soon as a report is finished, while the worker waits for the next."""

    def is_finished() -> bool:
        if watch.job(job_id).progress is None:
            return False
        deadline = time.monotonic() + 60
        while not [path for path in kept_in(context) if path.stem == report]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return True

    with watch.once(job_id, is_finished, act):
        yield


def kept_in(context: WorkerContext) -> list[Path]:
    """The finished reports of jobs that have not ended."""
    return list(context.settings.work_dir.glob("**/state/reports-*/*.json"))


def test_an_analysis_is_that_of_the_library(
    context: WorkerContext, analysis: Callable[..., str], watch: Watch, claim: Claim, opened: Open
) -> None:
    job_id = analysis()
    run_job(context, claim(), NEVER)
    job, artifacts = watch.job(job_id), artifacts_of(context, job_id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert set(artifacts) == {"analysis.json", "analysis.html", "ranking.jsonl", ARCHIVE_NAME, PROVENANCE}
    made, expected = result_of(context, job_id), of_the_library(opened, WantedReports())
    assert made == job.report
    for name, report in expected.model_dump(mode="json")["reports"].items():
        theirs = made["reports"][name]
        assert untimed(theirs | {"advice": None, "against": None}) == untimed(
            report | {"advice": None, "against": None}
        )
    assert made["names"] == {
        "checkpoint": job.name,
        "data": "validation.jsonl",
        "train": "train.jsonl",
        "against": "checkpoint",
    }
    assert job.summary is not None
    assert [one["report"] for one in job.summary["findings"]] == list(made["reports"])
    named = f"{opened.uri('checkpoint')} --data {opened.uri('validation.jsonl')} "
    assert all(named in one["command"] for one in job.summary["findings"] if one["command"])
    assert str(context.settings.work_dir) not in json.dumps(made)
    assert (watch.trials(job_id), watch.path(job_id)) == ([], None)
    assert (job.progress or {})["first_look"] == "40 rows, 30 training rows, classification"
    assert list(context.settings.work_dir.iterdir()) == []


def test_what_is_asked_for_is_made(
    context: WorkerContext, analysis: Callable[..., str], watch: Watch, claim: Claim
) -> None:
    job_id = analysis(["cka"], 10, train=None, against=None)
    run_job(context, claim(), NEVER)
    made = result_of(context, job_id)
    assert {name for name, report in made["reports"].items() if report is not None} == {"cka"}
    assert "ranking.jsonl" not in artifacts_of(context, job_id)
    assert made["notes"][0].startswith("data: 10 of 40 rows")


def test_cancelled_it_ends_and_leaves_nothing(
    context: WorkerContext, analysis: Callable[..., str], watch: Watch, claim: Claim
) -> None:
    job_id = analysis()
    with after(context, watch, job_id, "heads", lambda: _ask(context, request_cancel, job_id)):
        run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.CANCELLED
    assert artifacts_of(context, job_id) == {}
    assert left_behind(context, job_id) == []


def test_paused_and_resumed_it_is_the_same_and_makes_no_finished_report_again(
    context: WorkerContext, analysis: Callable[..., str], watch: Watch, claim: Claim
) -> None:
    undisturbed = analysis()
    run_job(context, claim(), NEVER)
    job_id = analysis()
    with after(context, watch, job_id, "cka", lambda: _ask(context, request_pause, job_id)):
        run_job(context, claim(), NEVER)
    assert watch.job(job_id).state is JobState.PAUSED
    kept = {path.stem: json.loads(path.read_text()) for path in kept_in(context)}
    assert {"layers", "heads", "cka"} <= set(kept)
    _ask(context, resume_job, job_id)
    run_job(context, claim(), NEVER)
    made = result_of(context, job_id)
    assert untimed(made) == untimed(result_of(context, undisturbed))
    for name, one in kept.items():
        assert made["reports"][name] == one["reports"][name]  # its time, too


def test_retried_on_other_rows_it_takes_over_nothing(
    context: WorkerContext, analysis: Callable[..., str], watch: Watch, claim: Claim, tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "rows.jsonl", tiny_rows(40))
    job_id = analysis(["heads", "cka"], validation={"uri": f"file://{data}"}, train=None, against=None)
    with after(context, watch, job_id, "heads", lambda: _ask(context, request_cancel, job_id)):
        run_job(context, claim(), NEVER)
    write_rows(data, tiny_rows(25, seed=4))
    _ask(context, retry_job, job_id)
    run_job(context, claim(), NEVER)
    assert result_of(context, job_id)["reports"]["heads"]["rows"] == 25


@pytest.mark.parametrize("part", ["checkpoint", "against", "reports"])
def test_what_cannot_be_analyzed_is_named(
    context: WorkerContext, analysis: Callable[..., str], watch: Watch, claim: Claim, tmp_path: Path, part: str
) -> None:
    save_tiny_checkpoint(tmp_path / "other", tiny_config(layers=1))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "mystery"}')
    change: dict[str, Any] = {
        "checkpoint": {"checkpoint": {"uri": f"file://{tmp_path / 'broken'}"}},
        "against": {"against": {"uri": f"file://{tmp_path / 'other'}"}},
        "reports": {"reports": ["drift"], "against": None},
    }[part]
    job_id = analysis(**change)
    run_job(context, claim(), NEVER)
    job = watch.job(job_id)
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error["param"] == part
    assert "--" not in job.error["message"]
    assert str(context.settings.work_dir) not in job.error["message"]


def _ask(context: WorkerContext, do: Callable[[Session, str], Any], job_id: str) -> None:
    with session_scope(context.sessions) as session:
        do(session, job_id)
