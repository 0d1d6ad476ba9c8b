"""The trace is the same in every format, and the same as the library's."""

import csv
import io
import json

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as law
from hypothesis import strategies as st

from api.errors import NoValidKeyError
from api.services import access, trace_formats
from api.services.trace_formats import WRITERS, comma_separated, ndjson
from axformer.plan.trial import Phase, Trial, Verdict
from store.repositories.keys import revoke_key
from store.session import session_scope

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TRIALS = st.lists(
    st.builds(
        Trial,
        seq=st.integers(0, 2**40),
        phase=st.sampled_from(Phase),
        element=st.none() | st.from_regex(r"layer\.[0-9]{1,2}(\.ffn)?", fullmatch=True),
        loss=FINITE,
        loss_is_bound=st.booleans(),
        helped=st.none() | st.integers(0, 2**40),
        samples=st.integers(0, 2**40),
        total=st.integers(1, 2**40),
        min_loss=FINITE,
        verdict=st.sampled_from(Verdict),
        precision=st.sampled_from(["float32", "bfloat16"]),
        parameters=st.integers(0, 2**40),
        seconds=st.floats(0, 1e9),
    ),
    max_size=5,
)


def from_csv(text: str) -> list[Trial]:
    rows = csv.DictReader(io.StringIO(text))
    return [Trial.model_validate({key: value or None for key, value in row.items()}) for row in rows]


@given(trials=TRIALS)
def test_every_format_gives_back_the_same_trials(trials):
    assert [Trial.model_validate_json(line) for line in ndjson(trials)] == trials
    assert from_csv(b"".join(comma_separated(trials)).decode()) == trials


@pytest.fixture
def traced(stage, make_trial):
    """A job and its 20 trials: more than a page, more than two chunks."""
    trials = [make_trial(seq) for seq in range(20)]
    return stage.running(trials), trials


def read(api, job_id, accept, **params):
    return api.get(f"/v1/jobs/{job_id}/trace", headers={"Accept": accept}, params=params)


def test_lines_are_those_of_the_library(api, traced):
    job_id, trials = traced
    answer = read(api, job_id, "application/x-ndjson")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.text == "".join(trial.model_dump_json() + "\n" for trial in trials)
    assert read(api, job_id, "application/jsonl").content == answer.content


def test_formats_equal_each_other_and_the_pages(api, traced):
    job_id, trials = traced
    pages, after, has_more = [], -1, True
    while has_more:
        page = read(api, job_id, "application/json", after=after, limit=8).json()
        pages += page["data"]
        after, has_more = page["next"], page["has_more"]
    assert [json.dumps(item) for item in pages] == [json.dumps(json.loads(trial.model_dump_json())) for trial in trials]
    table = read(api, job_id, "text/csv")
    assert from_csv(table.text) == trials
    assert table.headers["Content-Disposition"].startswith(f'attachment; filename="{job_id}-trace.csv"')


@law(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    after=st.integers(-1, 25),
    limit=st.none() | st.integers(1, 25),
    accept=st.sampled_from(["application/json", *WRITERS]),
)
def test_any_part_is_a_slice(api, traced, after, limit, accept):
    job_id, trials = traced
    answer = read(api, job_id, accept, after=after, **({"limit": limit} if limit else {}))
    size = limit or (5 if accept == "application/json" else 20)
    expected = trials[after + 1 : after + 1 + size]
    match accept:
        case "application/json":
            page = answer.json()
            assert page["next"] == (expected[-1].seq if expected else after)
            assert page["has_more"] == (after + 1 + size < 20)
            found = [Trial.model_validate(item) for item in page["data"]]
        case "text/csv":
            found = from_csv(answer.text)
        case _:
            found = [Trial.model_validate_json(line) for line in answer.text.splitlines()]
    assert found == expected


def test_a_growing_trace_is_followed_by_its_cursor(api, stage, make_trial):
    job_id = stage.running([make_trial(0)])
    first = read(api, job_id, "application/json").json()
    assert (first["has_more"], first["next"]) == (False, 0)
    assert read(api, job_id, "*/*", after=0).json() == {"data": [], "has_more": False, "next": 0}
    stage.add_trials(job_id, [make_trial(1), make_trial(2)])
    assert [item["seq"] for item in read(api, job_id, "*/*", after=0).json()["data"]] == [1, 2]


def test_a_trace_that_is_read_slowly_breaks_off_when_its_key_is_revoked(api, stage, crew, sessions, make_trial):
    resources = api.app.state.resources
    job_id = stage.running([make_trial(seq) for seq in range(2 * resources.settings.trace_chunk)])
    caller = access.sign_in(resources, crew.key, None)
    trials = trace_formats.stream(resources.reading_sessions, caller, job_id, after=-1, limit=None, chunk=7)
    assert [next(trials).seq for _ in range(7)] == list(range(7))
    with session_scope(sessions) as session:
        revoke_key(session, caller.key_id)
    with pytest.raises(NoValidKeyError, match="no longer valid"):
        next(trials)


def test_bad_questions(api, traced):
    job_id, _ = traced
    assert read(api, job_id, "application/xml").status_code == 406
    assert read(api, job_id, "*/*", after=-2).status_code == 422
    assert read(api, job_id, "text/csv", limit=51).status_code == 422
    assert read(api, job_id, "*/*", after="x").json()["errors"][0]["parameter"] == "after"
