"""Who asks too often is told when to come back; a broker that is away stops nobody."""

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from api.main import create_app
from api.rate_limits import RateLimits
from store.ids import new_id
from store.setting_groups import RateSettings
from store.system.processes import free_port


@pytest.fixture
def strict(settings):
    """Few requests in a window, and counters that no other test has."""
    return settings.model_copy(update={"celery_queue": new_id("test"), "rate": RateSettings(requests=3, refusals=2)})


@pytest.fixture
def strict_client(strict):
    with TestClient(create_app(strict), raise_server_exceptions=False) as made:
        yield made


def test_a_key_that_asks_too_often_is_refused_and_no_other(strict_client, strict, crew, rivals):
    left = []
    for _ in range(3):
        answer = strict_client.get("/v1/jobs", headers=crew.headers)
        assert answer.status_code == 200
        assert answer.headers["RateLimit-Policy"] == '"key";q=3;w=60'
        left.append(answer.headers["RateLimit"].split(";")[1])
    assert left == ["r=2", "r=1", "r=0"]
    refused = strict_client.get("/v1/jobs", headers=crew.headers)
    assert (refused.status_code, refused.headers["Content-Type"]) == (429, "application/problem+json")
    assert (refused.json()["code"], refused.json()["used"], refused.json()["limit"]) == ("rate_limited", 4, 3)
    seconds = int(refused.headers["Retry-After"])
    assert 0 < seconds <= 60
    assert refused.headers["RateLimit"] == f'"key";r=0;t={seconds}'
    assert strict_client.get("/v1/jobs", headers=rivals.headers).status_code == 200


def test_an_address_without_a_valid_key_is_refused_and_those_with_one_are_not(strict_client, crew):
    statuses = [strict_client.get("/v1/jobs", headers={"Authorization": "Bearer x"}).status_code for _ in range(3)]
    assert statuses == [401, 401, 429]
    refused = strict_client.get("/v1/jobs")
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["RateLimit-Policy"] == '"address";q=2;w=60'
    assert strict_client.get("/v1/jobs", headers=crew.headers).status_code == 200
    assert strict_client.get("/healthz").status_code == 200


def test_what_has_no_limit_is_not_counted(strict, crew):
    free = strict.model_copy(update={"rate": RateSettings(requests=0, refusals=0)})
    with TestClient(create_app(free)) as client:
        for _ in range(5):
            answer = client.get("/v1/jobs", headers=crew.headers)
            assert (answer.status_code, "RateLimit" in answer.headers) == (200, False)
            assert client.get("/v1/jobs").status_code == 401


def test_all_processes_count_together_until_the_window_ends(strict):
    first, second = RateLimits(strict), RateLimits(strict.model_copy(update={"rate": RateSettings(window_seconds=30)}))
    try:
        rates = [limits.count("key", "k", 10) for limits in (first, second, first)]
        assert [rate.used for rate in rates] == [1, 2, 3]
        assert {0 < rate.left_seconds <= 60 for rate in rates} == {True}
        first._client.delete(f"{strict.celery_queue}:rate:key:k")  # as when its time is over
        assert first.count("key", "k", 10).used == 1
    finally:
        first.close()
        second.close()


def test_while_the_broker_is_away_requests_pass_and_it_is_said_once(strict, crew, capsys):
    away = {
        "broker_url": SecretStr(f"redis://127.0.0.1:{free_port()}/0"),
        "rate": RateSettings(requests=3, refusals=2, pause_seconds=3600),
    }
    with TestClient(create_app(strict.model_copy(update=away))) as client:
        capsys.readouterr()
        for _ in range(5):
            answer = client.get("/v1/jobs", headers=crew.headers)
            assert (answer.status_code, "RateLimit" in answer.headers) == (200, False)
        said = capsys.readouterr()
    assert (said.out + said.err).count("rate_limits_off") == 1
