"""Results are sent on by command; the token comes from the environment or a prompt."""

import pytest

from axformer.client import Client
from store.repositories.handovers import claim_handover
from store.session import Sessions, session_scope
from store.settings import Settings
from store.signing import open_vault
from tests.api.conftest import Stage
from tests.client.commands import answered, logged_in, ran, run
from tests.client.conftest import FILES

pytestmark = logged_in
URI = "hf://acme/small"


@pytest.fixture
def token(sessions: Sessions, settings: Settings):
    """The token that the service has got."""

    def got() -> str:
        with session_scope(sessions) as session:
            claimed = claim_handover(session, 60, most=5)
        assert claimed is not None
        assert claimed.token is not None
        return open_vault(settings).unlock(claimed.token)

    return got


def test_a_token_comes_from_the_environment_or_a_pipe(
    stage: Stage, token, monkeypatch: pytest.MonkeyPatch, api: Client
) -> None:
    job_id = stage.succeeded(FILES)
    result = run("deliver", job_id, URI, typed="hf_typed\n")
    assert (result.exit_code, result.stdout) == (0, f"{job_id} goes to {URI}: waiting\n")
    assert token() == "hf_typed"
    monkeypatch.setenv("AXFORMER_DELIVER_TOKEN", "hf_environment")
    assert answered("deliver", job_id)["deliver"]["uri"] == URI  # where it went before
    assert token() == "hf_environment"
    assert f"goes to     {URI}: sending" in ran("show", job_id)


def test_where_to_is_asked_for(stage: Stage) -> None:
    result = run("deliver", stage.succeeded(FILES))
    assert result.exit_code == 2
    assert "say where: axformer deliver" in result.stderr


def test_a_job_may_say_it_when_it_is_posted(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXFORMER_DELIVER_TOKEN", "hf_environment")
    job_id = ran("submit", "hf://acme/bert", "--data", "s3://acme/dev.csv", "--deliver", URI).split()[0]
    told = api.job(job_id).deliver
    assert told is not None
    assert (told.uri, told.state) == (URI, "waiting")
