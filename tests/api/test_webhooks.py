"""Webhooks as teams see them: asked for in a job, signed by secrets that are shown once, and seen on their way."""

import json

import pytest
from starlette.testclient import TestClient

from api.main import create_app
from store.setting_groups import WebhookSettings

URL = "https://ci.acme.example/hook?token=hidden"


@pytest.fixture
def secret(api):
    return api.post("/v1/webhook-secrets").json()


def posted(api, body, **webhook):
    return api.post("/v1/jobs", json=body | {"webhook": {"url": URL} | webhook})


def test_a_job_says_who_is_told_of_what(api, body, secret):
    job = posted(api, body).json()
    ends = ["job.succeeded", "job.failed", "job.cancelled"]
    assert job["webhook"] == {"url": "https://ci.acme.example/hook?…", "events": ends}
    assert api.get(job["links"]["deliveries"]).json() == {"data": [], "has_more": False, "next": 0}
    api.post(job["links"]["cancel"])
    (message,) = api.get(job["links"]["deliveries"]).json()["data"]
    assert (message["type"], message["state"], message["attempts"]) == ("job.cancelled", "pending", 0)
    assert "hidden" not in json.dumps(message)


def test_messages_come_in_pages_and_are_sent_again_by_hand(api, body, secret):
    job = posted(api, body, events=["job.created", "job.paused", "job.queued"]).json()
    for act in ("pause", "resume", "pause"):
        api.post(job["links"][act])
    page = api.get(job["links"]["deliveries"], params={"limit": 3}).json()
    assert ([item["seq"] for item in page["data"]], page["has_more"]) == ([1, 2, 3], True)
    rest = api.get(job["links"]["deliveries"], params={"after": page["next"]}).json()
    assert [item["type"] for item in rest["data"]] == ["job.paused"]
    again = api.post(f"{job['links']['deliveries']}/{page['data'][0]['id']}/redeliver")
    assert (again.status_code, again.json()["state"]) == (202, "pending")
    for unknown in ("msg_x", "%00"):
        answer = api.post(f"{job['links']['deliveries']}/{unknown}/redeliver")
        assert (answer.status_code, answer.json()["code"]) == (404, "delivery_not_found")


BAD = [
    ("http://ci.acme.example/", "https://"),
    ("ftp://ci.acme.example/", "https://"),
    ("https://user:pw@ci.acme.example/", "user name"),
    ("https://", "no host"),
    ("https://[::1", "not a URL"),
    ("https://x:port/", "not a URL"),
    ("https://localhost/", "public"),
    ("https://printer.local/", "public"),
    ("https://127.0.0.1/", "public"),
    ("https://127.1/", "public"),
    ("https://2130706433/", "public"),
    ("https://0x7f.0.0.1/", "public"),
    ("https://169.254.169.254/latest", "public"),
    ("https://10.0.0.8/", "public"),
    ("https://[::ffff:127.0.0.1]/", "public"),
    ("https://[64:ff9b::7f00:1]/", "public"),
]


def test_an_address_that_can_never_be_sent_to_is_refused(api, body, secret, subtests):
    for url, says in BAD:
        with subtests.test(url=url):
            answer = posted(api, body, url=url)
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["pointer"] == "#/webhook/url"
            assert says in answer.json()["detail"]
            assert "pw" not in answer.text


def test_the_operator_may_allow_a_host_and_plain_http(settings, crew, body):
    allowed = settings.model_copy(update={"webhook": WebhookSettings(private_hosts=("10.0.0.8",), plain_http=True)})
    with TestClient(create_app(allowed), headers=crew.headers) as client:
        client.post("/v1/webhook-secrets")
        assert posted(client, body, url="http://10.0.0.8/hook").status_code == 202
        assert posted(client, body, url="http://10.0.0.9/hook").status_code == 422


def test_a_webhook_needs_a_secret_and_known_events(api, body):
    answer = posted(api, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "no_webhook_secret")
    for events in ([], ["job.eaten"]):
        assert posted(api, body, events=events).json()["errors"][0]["pointer"].startswith("#/webhook/events")
    assert api.get("/v1/jobs").json()["data"] == []


def test_a_secret_is_shown_once_and_two_are_valid(api, client, rivals, settings):
    made = [api.post("/v1/webhook-secrets") for _ in range(3)]
    assert {answer.status_code for answer in made} == {201}
    assert all(answer.json()["secret"].startswith("whsec_") for answer in made)
    listed = api.get("/v1/webhook-secrets")
    assert [row["id"] for row in listed.json()["data"]] == [made[2].json()["id"], made[1].json()["id"]]
    assert [row["expires_at"] is None for row in listed.json()["data"]] == [True, False]
    assert "whsec_" not in listed.text
    newest = f"/v1/webhook-secrets/{made[2].json()['id']}"
    assert client.delete(newest, headers=rivals.headers).status_code == 404
    assert api.delete(newest).status_code == 204
    assert api.delete(newest).status_code == 404
    assert [row["id"] for row in api.get("/v1/webhook-secrets").json()["data"]] == [made[1].json()["id"]]
