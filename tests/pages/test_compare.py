"""Jobs side by side."""

import re
from html import unescape

import pytest

from axformer.config import make_config
from axformer.plan.trial import Verdict
from tests.axformer.reporting.earlier import form, report


@pytest.fixture
def two(stage, make_trial):
    found = []
    for margin in (1.1, 1.3):
        config = make_config("paper", {"refine_margin": margin}).model_dump(mode="json")
        trials = [make_trial(0), make_trial(1), make_trial(2, verdict=Verdict.ACCEPT)]
        job_id = stage.running(trials, name=f"margin {margin}", config=config)
        stage.succeed(job_id, {})
        found.append(job_id)
    return found


def test_it_shows_figures_and_only_the_knobs_that_differ(member, two):
    text = member.get("/compare?" + "&".join(f"job={one}" for one in two)).text
    for shown in ("margin 1.1", "margin 1.3", "refine margin", "parameters after"):
        assert shown in text
    assert "majority fraction" not in text


def test_the_loss_of_a_finished_job_is_of_the_model_that_was_kept(member, stage, make_trial):
    """The pass goes on beyond the model that ``confirm`` keeps."""
    end = {"done": 1, "known": 1, "seconds": 1.0, "base_loss": 0.5, "min_loss": 0.0625}
    finished = stage.running([make_trial(0)], end, name="finished")
    figures = {"test": None, "parameters": 10, "bytes": 40, "latency_ms": 1.5, "operations": 900}
    stage.succeed(
        finished, {}, base=figures | {"validation": {"loss": 0.5}}, pruned=figures | {"validation": {"loss": 0.375}}
    )
    running = stage.running([make_trial(0)], end | {"min_loss": 0.25}, name="running")
    text = member.get(f"/compare?job={finished}&job={running}").text
    row = text[text.index("loss after") :].partition("</tr>")[0]
    assert [loss for loss in ("0.0625", "0.3750", "0.2500") if loss in row] == ["0.3750", "0.2500"]


def test_it_shows_the_encoder_and_the_latency_without_pruning(member, stage):
    base = {"validation": {"loss": 0.4}, "test": None, "parameters": 100, "encoder_parameters": 53, "latency_ms": 4.0}
    found = [stage.running() for _ in range(2)]
    stage.succeed(found[0], {}, base=base, pruned=base | {"encoder_parameters": 41}, one_position_ms=3.625)
    stage.succeed(found[1], {})
    page = member.get("/compare?" + "&".join(f"job={one}" for one in found)).text
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    for row in ("of the encoder before 53 –", "of the encoder after 41 –", "times as fast by pruning alone 0.91 × –"):
        assert row in text


def test_what_one_chooses_by_comes_first_with_differences_and_the_best_marked(member, stage, make_trial):
    found = []
    for accuracy, latency in ((0.90, 2.0), (0.88, 1.0)):
        job_id = stage.running([make_trial(0)])
        figures = {"validation": {"loss": 0.4}, "parameters": 100, "latency_ms": 4.0}
        base = figures | {"test": {"f1": 0.5, "loss": 0.3, "accuracy": 0.91}}
        pruned = figures | {"test": {"f1": 0.5, "loss": 0.3, "accuracy": accuracy}, "latency_ms": latency}
        stage.succeed(job_id, {}, base=base, pruned=pruned)
        found.append(job_id)
    query = "&".join(f"job={one}" for one in found)
    page = member.get(f"/compare?{query}").text
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    rows = [
        "held-out accuracy before 0.9100 0.9100",
        "held-out accuracy after 0.9000 best 0.8800 -0.0200",
        "held-out f1 after 0.5000 0.5000 +0.0000",
        "times as fast, PyTorch 2.00 × 4.00 × best +2.00",
        "trials 1 1",
    ]
    assert [text.index(row) for row in rows] == sorted(text.index(row) for row in rows)
    (link,) = re.findall('href="([^"]+)">compare all with B<', page)
    assert "held-out accuracy after 0.8800 0.9000 best +0.0200" in re.sub(
        "(<[^>]+>|\\s)+", " ", member.get(unescape(link)).text
    )


def test_the_forms_of_all_results_are_on_one_picture(member, stage):
    found = []
    for accuracy in (0.84, 0.86):
        found.append(stage.running(name=f"to {accuracy}"))
        stage.succeed(found[-1], {}, **report(form("compact", 5.0, accuracy, (-0.02, 0.02))))
    query = "&".join(f"job={one}" for one in found)
    answer = member.get(f"/compare/results?{query}&width=500").text
    for told in ("A to 0.84, PyTorch -1.00, between -2.00 and 2.00, 2.00 times as fast", "B to 0.86, PyTorch 1.00"):
        assert told in answer
        assert told in member.get(f"/compare?{query}").text
    assert "B " not in member.get(f"/compare/results?job={found[0]}&job={stage.queued()}").text


@pytest.mark.parametrize("count", [0, 1, 7])
def test_too_few_or_too_many_are_told_so(member, count):
    answer = member.get("/compare?" + "&".join(f"job=job_{number}" for number in range(count)))
    assert answer.status_code == 422
    assert f"{count} jobs were ticked" in answer.text


def test_jobs_of_a_label_stand_side_by_side_in_the_order_in_which_they_were_posted(member, stage):
    first = stage.queued(name="margin 1.1", labels={"sweep": "margins"})
    text = member.get("/compare?label=sweep:margins")
    assert text.status_code == 422
    assert "1 jobs have label sweep:margins" in text.text
    second = stage.queued(name="margin 1.3", labels={"sweep": "margins"})
    stage.queued(name="another", labels={"sweep": "others"})
    page = member.get("/compare?label=sweep:margins").text
    assert re.findall(r'class="name grow" href="/jobs/(\w+)"', page) == [first, second]
    assert 'href="/compare?label=sweep%3Amargins"' in member.get("/?label=sweep:margins").text
    for _ in range(6):
        stage.queued(labels={"sweep": "margins"})
    assert "7 or more jobs have label" in member.get("/compare?label=sweep:margins").text


def test_jobs_of_another_team_are_not_compared(rival, two):
    assert rival.get("/compare?" + "&".join(f"job={one}" for one in two)).status_code == 404
