"""The page of a job: figures, chart, map, log, files, and what can be done with it."""

import json
import math
import re
import tracemalloc

import pytest

from api.pages import pictures
from api.pages.pictures import MOST_MARKS
from api.pages.routes import job as job_page
from api.services.trace_formats import CSV, NDJSON
from axformer.config import make_config
from axformer.intake.limits import DIMENSIONS as LIMITS
from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan
from axformer.plan.trial import ModelFigures, Phase, Verdict
from store.repositories import leases
from store.repositories.events import record_event
from store.repositories.trace_views import thinned_points
from store.session import session_scope
from store.states import JobState
from store.tables.jobs import Job

MOST_BYTES = 64 * 2**20
DIMENSIONS = {"layers": 2, "heads": 2, "hidden_size": 8, "intermediate_size": 12}
PROGRESS = {
    "done": 7,
    "known": 12,
    "seconds": 3.0,
    "seconds_left": 9.0,
    "base_loss": 0.5,
    "first_look": "872 rows, 51 % <b>good</b>",
    "min_loss": 0.4,
    "estimated_speedup": 1.5,
    "dimensions": DIMENSIONS,
}


@pytest.fixture
def trials(make_trial):
    """A pass over the last layer of two."""
    steps = [
        (Phase.HARD_ATTENTION, "layer.0.hard_attention", Verdict.REJECT),
        (Phase.HARD_ATTENTION, "layer.1.hard_attention", Verdict.ACCEPT),
        (Phase.BLOCK, "layer.1.ffn", Verdict.REFINE),
        (Phase.NEURONS, "layer.1.ffn.neurons.0:6", Verdict.ACCEPT),
        (Phase.NEURONS, "layer.1.ffn.neurons.6:12", Verdict.REJECT),
        (Phase.BLOCK, "layer.1.attention", Verdict.ACCEPT),
    ]
    return [make_trial(0)] + [
        make_trial(seq, phase=phase, element=element, verdict=verdict)
        for seq, (phase, element, verdict) in enumerate(steps, start=1)
    ]


@pytest.fixture
def running(stage, trials):
    return stage.running(trials, PROGRESS, config=make_config().model_dump(mode="json"), name="at work")


def test_it_shows_how_far_the_pass_is(member, running):
    text = member.get(f"/jobs/{running}").text
    for shown in ("at work", "3 accepted, 1 refined", "from 0.5000, -20.0 %", "1.50", "9 s", "job.running"):
        assert shown in text
    assert "1.2 k" in text  # parameters of what was accepted: 200 + 400 + 600


def test_where_no_trial_says_how_long_it_takes_the_step_does(member, stage, trials):
    step = {"name": "training", "done": 3, "known": 9, "seconds_left": 80.0}
    unknown = PROGRESS | {"seconds_left": None, "step": step}
    page = member.get(f"/jobs/{stage.running(trials[:1], unknown)}").text
    assert re.search(r"Time left</dt><dd>1 min 20 s<span class=\"sub\">of this step; 3 s in trials so far", page)
    page = member.get(f"/jobs/{stage.running(trials[:1], unknown | {'seconds_left': 9.0})}").text
    assert re.search(r"Time left</dt><dd>9 s<span class=\"sub\">3 s in trials so far", page)


def test_it_shows_the_data_and_the_untouched_model_first(member, running):
    text = member.get(f"/jobs/{running}").text
    said = text.index("Validation data: 872 rows, 51 % &lt;b&gt;good&lt;/b&gt;.")
    assert said < text.index("Validation loss")


def test_what_was_noted_before_the_first_trial_stands_above_the_figures(member, running, sessions):
    with sessions.begin() as session:
        record_event(session, session.get_one(Job, running), "job.noted", {"notes": ["few <rows>"]})
    text = member.get(f"/jobs/{running}").text
    assert text.index("few &lt;rows&gt;.</p>") < text.index("Validation loss")


def test_the_map_tells_what_became_of_every_element(member, running):
    text = member.get(f"/jobs/{running}").text
    for words in (
        "layer.1.hard_attention: hard attention, loss 0.2000, least before",
        "layer.1.attention: removed, loss",
        "layer.1.ffn: kept, its parts tried, loss at least",
        "layer.1.ffn.neurons.0:6: removed",
        "layer.1.ffn.neurons.6:12: kept, loss at least",
        "layer.0.ffn: not tried yet",
        "layer.0.hard_attention: kept",
    ):
        assert f"<title>{words}" in text
    assert ">50 %<" in text


def titles(text):
    """What the pictures of a page tell of their marks."""
    return re.findall(r"</?title>([^<]+)</title></(?:path|rect)>", text)


def test_the_marks_of_the_chart_are_those_of_the_trace(member, running, stage, make_trial, trials):
    def numbers():
        told = titles(member.get(f"/jobs/{running}/chart").text)
        return sorted({int(one.split(":")[0]) for one in told if one[0].isdigit()})

    assert numbers() == [trial.seq for trial in trials[1:]]
    stage.add_trials(running, [make_trial(7)])
    assert numbers() == list(range(1, 8))


def figures(share: float, accuracy: float) -> ModelFigures:
    counts = dict.fromkeys(("parameters", "encoder_parameters", "operations", "encoder_operations"), int(1000 * share))
    return ModelFigures(metrics={"loss": 1 - accuracy, "accuracy": accuracy}, **counts)


def test_the_curve_of_whole_plans_grows_with_every_model(member, stage, make_trial):
    plan = Plan.full(Dimensions(**DIMENSIONS)).layers
    told = []
    trials = [make_trial(0, figures=figures(1.0, 0.9))]
    for seq, (share, accuracy) in enumerate(((0.8, 0.89), (0.5, 0.91)), start=1):
        about = {"element": f"encoder.{share}", "plan": plan, "figures": figures(share, accuracy)}
        trials.append(make_trial(seq, phase=Phase.BUDGET, verdict=Verdict.ACCEPT, **about))
    config = make_config("smallest").model_dump(mode="json")
    job_id = stage.running(trials[:1], PROGRESS, config=config, name="at work")
    assert "There is no smaller model yet." in member.get(f"/jobs/{job_id}").text
    for trial in trials[1:]:
        stage.add_trials(job_id, [trial])
        told.append(re.findall("<title>([^<]+)</title></circle>", member.get(f"/jobs/{job_id}/chart").text))
    assert [len(marks) for marks in told] == [2, 3]
    assert "deciding accuracy -1.00 points (0.8900), 1.25 times as fast" in told[0][1]
    assert "What speed costs, model by model" in member.get(f"/jobs/{job_id}").text
    assert "this model" not in member.get(f"/jobs/{job_id}/chart").text


@pytest.mark.parametrize("picture", ["chart", "map"])
def test_a_picture_is_as_wide_as_its_place_and_has_no_style_of_its_own(member, running, picture):
    answer = member.get(f"/jobs/{running}/{picture}?width=360")
    assert 'width="360"' in answer.text
    assert "style" not in answer.text, "pages forbid styles that are not in a style sheet"
    assert "style-src 'self'" in answer.headers["content-security-policy"]
    assert answer.text.partition("<svg")[2] != ""
    assert f'data-picture="/jobs/{running}/{picture}"' in member.get(f"/jobs/{running}").text
    for width in ("20", "20000", "x"):
        assert member.get(f"/jobs/{running}/{picture}?width={width}").status_code == 422


def test_a_job_without_a_trial_has_no_pictures_yet(member, stage):
    job_id = stage.queued()
    text = member.get(f"/jobs/{job_id}").text
    assert "There is no trial yet." in text
    assert "The map appears when" in text
    assert [member.get(f"/jobs/{job_id}/{picture}").text for picture in ("chart", "map")] == ["", ""]


def test_of_a_long_pass_the_pictures_are_asked_for_after_the_page(member, running, monkeypatch):
    drawn = member.get(f"/jobs/{running}").text
    monkeypatch.setattr(job_page, "MOST_DRAWN", 1)
    later = member.get(f"/jobs/{running}").text
    assert (drawn.count("data-later"), later.count("data-later")) == (0, 2)
    for picture in ("chart", "map"):
        assert f'data-picture="/jobs/{running}/{picture}"' in later
        assert f'<a href="/jobs/{running}/{picture}">' in later
        assert member.get(f"/jobs/{running}/{picture}").text in drawn
    assert "<svg" not in later.partition('id="chart"')[2].partition('id="log-title"')[0]


def test_of_a_pass_of_very_many_trials_the_chart_reads_those_that_it_may_mark(stage, sessions, make_trial):
    verdicts = (Verdict.REJECT, Verdict.ACCEPT)
    trials = [make_trial(0), *(make_trial(seq, verdict=verdicts[seq % 2]) for seq in range(1, 1000))]
    job_id = stage.running(trials)
    with session_scope(sessions) as session:
        points = thinned_points(session, job_id, most=10)
        assert points == thinned_points(session, job_id, most=10)
    numbers = [point.seq for point in points]
    assert numbers == sorted(set(numbers))
    assert {*range(0, 1000, 100), 999} <= set(numbers)
    turns = [point.seq for point in points if point.verdict == Verdict.ACCEPT]
    assert len(turns) == pytest.approx(1000 / 12 / 2, abs=15)  # a twelfth is drawn, and half of them is accepted
    assert all(one.verdict == Verdict.ACCEPT or one.seq % 100 == 0 for one in points if one.seq != 999)


def test_of_a_long_pass_a_sample_of_the_rejected_trials_is_marked_and_all_others(stage, sessions, make_trial):
    trials = [make_trial(0), *(make_trial(seq, verdict=Verdict.REJECT) for seq in range(1, 100))]
    trials[7], trials[8] = make_trial(7, verdict=Verdict.ACCEPT), make_trial(8, verdict=Verdict.REFINE)
    job_id = stage.running(trials)
    with session_scope(sessions) as session:
        points = thinned_points(session, job_id, most=10)
        assert [point.seq for point in points] == [0, 7, 8, *range(10, 100, 10), 99]
        assert len(thinned_points(session, job_id, most=100)) == 100
        assert thinned_points(session, stage.queued(), most=10) == []


def test_the_chart_of_a_long_pass_stays_small_and_its_counts_are_those_of_the_pass(member, stage, make_trial):
    trials = [make_trial(0), *(make_trial(seq, verdict=Verdict.REJECT) for seq in range(1, 3 * MOST_MARKS))]
    answer = member.get(f"/jobs/{stage.running(trials)}/chart").text
    rejected = f"{3 * MOST_MARKS - 1:,} rejected"
    assert f"{3 * MOST_MARKS:,} trials: the untouched model, 0 accepted, 0 refined, {rejected}" in answer
    assert 0 < len(titles(answer)) <= MOST_MARKS + 1, "with the line of the untouched model"
    assert len(answer) < 300 * MOST_MARKS


def test_the_map_of_the_largest_model_is_bounded(member, stage):
    largest = {
        "layers": LIMITS["num_hidden_layers"],
        "heads": LIMITS["num_attention_heads"],
        "hidden_size": LIMITS["hidden_size"],
        "intermediate_size": LIMITS["intermediate_size"],
    }
    job_id = stage.running([], PROGRESS | {"dimensions": largest})
    tracemalloc.start()
    try:
        answer = member.get(f"/jobs/{job_id}/map")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.text.count("head.") == 2 * largest["layers"] * largest["heads"]
    assert peak < MOST_BYTES


def test_a_loss_that_is_no_number_is_marked_too(member, stage, make_trial):
    job_id = stage.running([make_trial(0), make_trial(1, loss=math.inf), make_trial(2, loss=math.nan)])
    told = " ".join(titles(member.get(f"/jobs/{job_id}/chart").text))
    assert "loss at least inf" in told
    assert "rejected, loss nan" in told
    assert "inf" in member.get(f"/jobs/{job_id}/trace").text


def test_it_moves_until_the_job_has_ended(member, running, stage):
    kinds = []
    with member.client.stream("GET", f"/jobs/{running}/live") as answer:
        for line in answer.iter_lines():
            if line.startswith("event:"):
                kinds.append(line.removeprefix("event: "))
            if line.startswith("data:") and len(kinds) == 1:
                assert set(json.loads(line.removeprefix("data:"))) == {
                    "summary",
                    "result",
                    "process",
                    "files",
                    "log",
                    "end",
                }
                stage.succeed(running, {"plan.json": b"{}"})
    assert kinds[0] == "parts"
    assert kinds[-1] == "end"


def test_a_job_that_succeeded_has_figures_and_files_with_digests(member, stage, trials):
    job_id = stage.succeeded({"model/config.json": b"{}"}, trials)
    text = member.get(f"/jobs/{job_id}").text
    assert "Before and after" in text
    assert "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" in text
    file = member.client.get(f"/jobs/{job_id}/files/model/config.json")
    assert file.content == b"{}"
    assert file.headers["content-disposition"].startswith("attachment")


def test_what_was_removed_and_what_was_rewritten_are_counted_apart(member, stage):
    both, nothing = stage.running(), stage.running()
    stage.succeed(both, {}, removed=["layer.0", "layer.2.ffn"], hard_attention=[1])
    stage.succeed(nothing, {}, removed=["layer.0"], hard_attention=[])
    assert "2 elements were removed, and 1 layer has hard attention now." in member.get(f"/jobs/{both}").text
    assert "1 element was removed." in member.get(f"/jobs/{nothing}").text


def test_it_tells_the_encoder_and_how_much_of_the_latency_is_no_pruning(member, stage):
    base = {"validation": {"loss": 0.4}, "test": None, "parameters": 100, "bytes": 40, "operations": 900}
    base |= {"latency_ms": 4.0, "encoder_parameters": 50}
    pruned = base | {"parameters": 90, "encoder_parameters": 40, "latency_ms": 3.0}
    job_id = stage.running()
    stage.succeed(job_id, {}, base=base, pruned=pruned, one_position_ms=3.6)
    text = " ".join(re.sub("<[^>]+>", " ", member.get(f"/jobs/{job_id}").text).split())
    assert "-10.0 %; of the encoder -20.0 %" in text
    assert "parameters of the encoder 50 40 -20.0 %" in text
    assert "latency by pruning alone, ms 3.60 3.00 -16.7 %" in text
    assert "Of the change in latency -10.0 % comes from computing the last layer at the one position" in text


def test_a_job_that_failed_says_why_and_can_be_retried(member, stage):
    job_id = stage.failed()
    text = member.get(f"/jobs/{job_id}").text
    assert text.count("no rows") == 1
    assert "A retry fails alike" in text
    assert f'action="/jobs/{job_id}/retry"' in text
    assert f'action="/jobs/{job_id}/cancel"' not in text


def test_a_job_that_failed_before_its_first_trial_has_one_banner_and_no_empty_places(member, stage, sessions):
    job_id = stage.running()
    message = "dev.csv has no column 'text', it has a, b; name the columns, for example --columns text=a"
    error = {"code": "invalid_data", "message": message, "param": "validation", "retryable": False}
    with session_scope(sessions) as session:
        leases.finish_failed(session, job_id, session.get_one(Job, job_id).fence, error)
    text = member.get(f"/jobs/{job_id}").text
    assert text.count("name the columns, for example text=a under Columns.") == text.count('role="alert"') == 1
    assert "--columns" not in text
    for empty in ('id="chart"', 'id="map"', "<dt>Trials</dt>", "SHA-256"):
        assert empty not in text
    assert f'class="button main" id="post-again" href="/new?like={job_id}"' in text


@pytest.mark.parametrize(
    "page", ["", "/settings", "/trace", "/chart", "/map", "/live", "/files/plan.json", "/trace/file/csv"]
)
def test_another_team_sees_none_of_it(rival, running, page):
    assert rival.get(f"/jobs/{running}{page}").status_code == 404


@pytest.mark.parametrize("action", ["cancel", "pause", "resume", "retry", "delete"])
def test_another_team_can_do_nothing_with_it(rival, running, action):
    assert rival.post(f"/jobs/{running}/{action}", rival.token("/")).status_code == 404


def state(sessions, job_id):
    with session_scope(sessions) as session:
        return session.get_one(Job, job_id).state


def test_it_is_steered_by_forms(member, stage, sessions):
    job_id = stage.queued()
    for action, expected in (
        ("pause", JobState.PAUSED),
        ("resume", JobState.QUEUED),
        ("cancel", JobState.CANCELLED),
        ("retry", JobState.QUEUED),
    ):
        token = member.token(f"/jobs/{job_id}")
        assert member.post(f"/jobs/{job_id}/{action}", token).headers["location"] == f"/jobs/{job_id}"
        assert state(sessions, job_id) is expected
    member.post(f"/jobs/{job_id}/cancel", member.token("/"))
    assert member.post(f"/jobs/{job_id}/delete", member.token("/")).headers["location"] == "/"
    assert member.get(f"/jobs/{job_id}").status_code == 404


def test_what_cannot_be_done_is_a_page_that_says_so(member, stage):
    answer = member.post(f"/jobs/{stage.queued()}/retry", member.token("/"))
    assert answer.status_code == 409
    assert "only a failed or cancelled one can be retried" in answer.text


def test_settings_show_every_knob(member, running):
    text = member.get(f"/jobs/{running}/settings").text
    for name in make_config().model_dump():
        assert name.replace("_", " ") in text


def rows(text):
    return [part.partition("<")[0] for part in text.partition("<tbody>")[2].split('<td class="num">')[1::5]]


def test_the_whole_trace_is_downloaded_as_the_api_gives_it(member, running, crew):
    for suffix, media_type in (("csv", CSV), ("jsonl", NDJSON)):
        file = member.get(f"/jobs/{running}/trace/file/{suffix}")
        assert file.headers["content-disposition"].startswith(f'attachment; filename="{running}-trace.{suffix}"')
        headers = {"Authorization": f"Bearer {crew.key}", "Accept": media_type}
        assert file.content == member.client.get(f"/v1/jobs/{running}/trace", headers=headers).content
    assert member.get(f"/jobs/{running}/trace/file/xml").status_code == 404


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", list("0123456")),
        ("order=down", list("6543210")),
        ("sort=loss", list("6543210")),
        ("verdict=accept", list("246")),
        ("verdict=accept&order=down", list("642")),
        ("phase=neurons", list("45")),
        ("element=FFN", list("345")),
        ("sort=nonsense&verdict=nonsense&phase=nonsense", list("0123456")),
        ("element=%25", []),
        ("page=2", []),
    ],
)
def test_the_trace_is_sorted_and_filtered(member, running, query, expected):
    assert rows(member.get(f"/jobs/{running}/trace?{query}").text) == expected


def test_the_map_of_a_finished_job_shows_the_model_that_was_kept(member, stage, make_trial):
    accepted = {"verdict": Verdict.ACCEPT}
    trials = [make_trial(0), make_trial(1, **accepted), make_trial(2, **accepted)]
    size = {"layers": 4, "heads": 2, "hidden_size": 8, "intermediate_size": 12}
    job_id = stage.running(trials, {"dimensions": size, "done": 3, "known": 3, "seconds": 1.0})
    path = [{"seq": seq, "kept": seq == 1} for seq in range(3)]
    stage.succeed(job_id, {}, path=path)
    text = member.get(f"/jobs/{job_id}").text
    assert "<title>layer.1.ffn: removed" in text
    assert "<title>layer.2.ffn: kept, loss" in text


def test_the_map_of_a_compression_whose_model_stays_untouched_is_whole(member, stage, make_trial):
    size = {"layers": 2, "heads": 2, "hidden_size": 8, "intermediate_size": 12}
    smaller = make_trial(1, phase=Phase.BUDGET, element="encoder.0.5", verdict=Verdict.ACCEPT, plan=[])
    progress = {"dimensions": size, "done": 2, "known": 2, "kept": 0}
    job_id = stage.running([make_trial(0), smaller], progress, config={"method": "compress"})
    text = member.get(f"/jobs/{job_id}/map").text
    assert "4 of 4 heads kept; 24 of 24 neurons kept" in text
    assert "not tried yet" not in text


def test_a_finished_job_says_whether_its_gain_is_one(member, stage, make_trial):
    finding = {
        "data": "test",
        "verdict": "no_reliable_gain",
        "sentence": "No reliable <gain>.",
        "advice": "",
        "answers": "",
    }
    job_id = stage.running([make_trial(0)])
    stage.succeed(job_id, {}, finding=finding)
    assert "<strong>No reliable &lt;gain&gt;.</strong>" in member.get(f"/jobs/{job_id}").text


def test_the_map_of_very_many_neurons_is_drawn_by_what_is_left(member, stage, make_trial, monkeypatch):
    """One removal after the other takes the square of their number; a map holds no more than can be seen."""
    monkeypatch.setattr(pictures, "MOST_NEURONS", 10)
    every = [make_trial(0)]
    for neuron in range(0, 40):
        verdict = Verdict.ACCEPT if neuron < 16 or neuron == 39 else Verdict.REJECT
        every.append(make_trial(len(every), element=f"layer.1.ffn.neurons.{neuron}:{neuron + 1}", verdict=verdict))
    scattered = make_trial(len(every), element="layer.0.ffn.neurons.0:2,30,33:40", verdict=Verdict.ACCEPT)
    dimensions = {"layers": 2, "heads": 2, "hidden_size": 4, "intermediate_size": 40}
    job_id = stage.running([*every, scattered], {"done": 41, "known": 41, "dimensions": dimensions})
    drawn = member.get(f"/jobs/{job_id}/map").text
    assert "Too many groups of neurons" in drawn
    assert f"{80 - 17 - 10} of 80 neurons kept" in drawn
    assert 'data-element="layer.1.ffn.neurons.0:16"' in drawn
    assert "layer.1.ffn.neurons.39:40: 1 of 1 removed" in drawn
    assert 'data-element="layer.0.ffn.neurons.33:40"' in drawn
