"""Every route against every kind of caller: without a key, with a bad one, of too little scope, and of another team.

``ACCESS`` names all routes of the API; one that is missing fails the first test. Pages need no entry: each of them must send
whoever has not signed in to the form.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import update

from axformer.plan.elements import Dimensions
from axformer.plan.plan import Plan, PlanFile, PlanSource
from axformer.wire.scopes import Scope
from store.repositories.keys import create_key, revoke_key
from store.session import session_scope
from store.tables.teams import ApiKey
from tests.sheets import sheet_of_path

ANYBODY = None
NOBODYS = ("name", "seq")
"""Parameters whose values every team has."""
SIZE = Dimensions(layers=2, heads=2, hidden_size=8, intermediate_size=12)
ACCESS: Mapping[str, Scope | None] = {
    "GET /v1/jobs": Scope.READ,
    "POST /v1/jobs": Scope.WRITE,
    "POST /v1/analyses": Scope.WRITE,
    "POST /v1/jobs/cancel": Scope.WRITE,
    "GET /v1/jobs/{job_id}": Scope.READ,
    "DELETE /v1/jobs/{job_id}": Scope.WRITE,
    "POST /v1/jobs/{job_id}/cancel": Scope.WRITE,
    "POST /v1/jobs/{job_id}/pause": Scope.WRITE,
    "POST /v1/jobs/{job_id}/resume": Scope.WRITE,
    "POST /v1/jobs/{job_id}/retry": Scope.WRITE,
    "POST /v1/jobs/{job_id}/deliver": Scope.WRITE,
    "GET /v1/jobs/{job_id}/trace": Scope.READ,
    "GET /v1/jobs/{job_id}/path": Scope.READ,
    "GET /v1/jobs/{job_id}/path/{seq}/plan": Scope.READ,
    "POST /v1/jobs/{job_id}/path/{seq}/export": Scope.WRITE,
    "GET /v1/jobs/{job_id}/needed": Scope.READ,
    "POST /v1/jobs/{job_id}/labels": Scope.WRITE,
    "GET /v1/jobs/{job_id}/events": Scope.READ,
    "GET /v1/jobs/{job_id}/artifacts": Scope.READ,
    "GET /v1/jobs/{job_id}/artifacts/{name:path}": Scope.READ,
    "HEAD /v1/jobs/{job_id}/artifacts/{name:path}": Scope.READ,
    "GET /v1/jobs/{job_id}/deliveries": Scope.READ,
    "POST /v1/jobs/{job_id}/deliveries/{delivery_id}/redeliver": Scope.WRITE,
    "POST /v1/webhook-secrets": Scope.ADMIN,
    "GET /v1/webhook-secrets": Scope.READ,
    "DELETE /v1/webhook-secrets/{secret_id}": Scope.ADMIN,
    "POST /v1/uploads": Scope.WRITE,
    "GET /v1/uploads/{upload_id}": Scope.READ,
    "DELETE /v1/uploads/{upload_id}": Scope.WRITE,
    "GET /v1/queue": Scope.READ,
    "GET /v1/me": Scope.READ,
    "GET /v1/keys": Scope.ADMIN,
    "POST /v1/keys": Scope.ADMIN,
    "POST /v1/keys/{key_id}/rotate": Scope.ADMIN,
    "DELETE /v1/keys/{key_id}": Scope.ADMIN,
    "GET /v1/audit": Scope.ADMIN,
    "GET /v1/metrics": Scope.READ,
    "GET /metrics": Scope.READ,
    "GET /v1/knobs": ANYBODY,
    "GET /v1/healthz": ANYBODY,
    "GET /v1/readyz": ANYBODY,
    "GET /healthz": ANYBODY,
    "GET /readyz": ANYBODY,
    "GET /openapi.json": ANYBODY,
}
OPEN_PAGES = {"GET /docs", "GET /sign-in", "POST /sign-in", "GET /static/{digest}/{name}"}
SIGN_IN = "/sign-in"
BODIES = {
    "/v1/jobs/{job_id}/deliver": {"uri": "hf://acme/small", "token": "x"},
    "/v1/jobs/{job_id}/labels": {"data": [{"id": "x", "label": 0}]},
}
"""Of routes that read theirs before they look for what is named."""
WEBHOOK = {"url": "https://ci.acme.example/axformer?token=canary", "events": ["job.succeeded"]}


@dataclass(frozen=True)
class Owned:
    """What the crew has, by the names of the routes' parameters."""

    parameters: Mapping[str, str]

    def at(self, path: str) -> str:
        """The address of the crew's own."""
        for name, value in self.parameters.items():
            path = path.replace(f"{{{name}}}", value).replace(f"{{{name}:path}}", value)
        assert "{" not in path, f"say in `owned` what of the crew's {path} leads to"
        return path


def routes(app) -> set[str]:
    """Every route of the app, as ``METHOD path``."""
    found = iter_route_contexts(app.routes)
    return {f"{method} {route.path}" for route in found for method in (route.methods or ()) if method != "OPTIONS"}


def protected(*scopes: Scope) -> Iterator[tuple[str, str]]:
    """Methods and paths that demand one of these."""
    for route, demanded in ACCESS.items():
        if demanded in scopes:
            method, path = route.split(" ")
            yield method, path


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def key(sessions, crew):
    """Makes keys of the crew."""

    def made(scope: Scope = Scope.ADMIN, **more) -> str:
        with session_scope(sessions) as session:
            return create_key(session, crew.id, "test", scope, **more).text

    return made


@pytest.fixture
def owned(client, crew, stage, make_trial) -> Owned:
    """One of everything."""
    progress = {"done": 1, "known": 1, "seconds": 1.0, "dimensions": asdict(SIZE)}
    job_id = stage.running([make_trial(0)], progress, webhook=WEBHOOK)
    source = PlanSource(model_type="bert", sha256="0" * 64)
    plan = PlanFile(source=source, config={"attention_top_k": 30}, layers=Plan.full(SIZE).layers)
    files = {"plan.json": plan, "answers.json": sheet_of_path()}
    stage.succeed(job_id, {name: made.model_dump_json().encode() for name, made in files.items()})

    def made(path: str, **more) -> str:
        return client.post(path, headers=crew.headers, **more).json()["id"]

    deliveries = client.get(f"/v1/jobs/{job_id}/deliveries", headers=crew.headers).json()["data"]
    return Owned(
        {
            "job_id": job_id,
            "seq": "0",
            "name": "plan.json",
            "delivery_id": deliveries[0]["id"],
            "upload_id": made("/v1/uploads", files={"file": ("data.csv", b"text,label\n")}),
            "secret_id": made("/v1/webhook-secrets"),
            "key_id": made("/v1/keys", json={"name": "another"}),
        }
    )


@pytest.fixture
def everything(client, crew, owned):
    """All that the crew can see of what it has, but for when its keys were used and what it has downloaded to see it."""

    def seen() -> dict[str, object]:
        answers = {}
        for method, path in protected(Scope.READ, Scope.ADMIN):
            if method == "GET" and not path.endswith(("/metrics", "/queue", "/me")):
                answer = client.get(owned.at(path), headers=crew.headers)
                assert answer.status_code == 200, path
                answers[path] = answer.json()
        for one in answers["/v1/keys"]["data"]:
            del one["last_used_at"]
        entries = answers["/v1/audit"].pop("data")
        answers["audit"] = [entry for entry in entries if entry["action"] != "artifact.download"]
        return answers

    return seen


def test_every_route_says_what_it_demands(app):
    in_document = {route for route in routes(app) if route.split(" ")[1].startswith("/v1")}
    assert in_document <= set(ACCESS), "say in ACCESS which scope the new routes demand"
    assert set(ACCESS) <= routes(app)
    for path, item in app.openapi()["paths"].items():
        for method, operation in item.items():
            said = [scope for entry in operation.get("security", []) for scopes in entry.values() for scope in scopes]
            name = f"{method.upper()} {path}".replace("{name}", "{name:path}")
            assert said == ([ACCESS[name]] if ACCESS[name] else []), name
            assert ("403" in operation["responses"]) == (ACCESS[name] in (Scope.WRITE, Scope.ADMIN)), name


def test_what_is_no_teams_needs_no_key(client):
    for route, demanded in ACCESS.items():
        if demanded is ANYBODY:
            assert client.get(route.split(" ")[1]).status_code == 200


@pytest.mark.slow
def test_without_a_valid_key_every_route_answers_with_401(client, crew, owned, key, sessions, subtests):
    expired = key(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    revoked = key()
    with session_scope(sessions) as session:
        revoke_key(session, revoked.split("_")[1])
    wrong = crew.key[:-1] + ("0" if crew.key[-1] != "0" else "1")
    callers = {
        "no key": {},
        "malformed": bearer("axk_\x00"),
        "another scheme": {"Authorization": f"Basic {crew.key}"},
        "wrong secret": bearer(wrong),
        "expired": bearer(expired),
        "revoked": bearer(revoked),
    }
    for method, path in protected(*Scope):
        for name, headers in callers.items():
            with subtests.test(method=method, path=path, caller=name):
                answer = client.request(method, owned.at(path), headers=headers)
                assert answer.status_code == 401
                assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="axformer"')
                assert answer.headers["Cache-Control"] == "no-store"
                if method != "HEAD":
                    assert answer.json()["code"] == "unauthorized"
                    assert "axk" not in answer.text.replace("axk_...", "")


def test_a_key_with_too_little_scope_changes_nothing(client, owned, key, everything, subtests):
    before = everything()
    keys = {Scope.READ: key(Scope.READ), Scope.WRITE: key(Scope.WRITE)}
    before["/v1/keys"] = everything()["/v1/keys"]
    for held, text in keys.items():
        for method, path in protected(*(scope for scope in Scope if not held.includes(scope))):
            with subtests.test(method=method, path=path, held=held):
                answer = client.request(method, owned.at(path), headers=bearer(text))
                assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
                assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"]
    assert everything() == before


def test_a_scope_allows_what_is_demanded(client, owned, key, subtests):
    keys = {scope: key(scope) for scope in Scope}
    for held, text in keys.items():
        for method, path in protected(*held.included):
            if method in ("GET", "HEAD") or path == "/v1/jobs":
                with subtests.test(method=method, path=path, held=held):
                    answer = client.request(method, owned.at(path), headers=bearer(text))
                    assert answer.status_code == (422 if method == "POST" else 200)


def test_what_a_team_has_is_not_there_for_others(client, crew, rivals, owned, everything, subtests):
    before = everything()
    for method, path in protected(*Scope):
        if "{" not in path:
            continue
        with subtests.test(method=method, path=path):
            answer = client.request(method, owned.at(path), headers=rivals.headers, json=BODIES.get(path))
            assert answer.status_code == 404
            if method != "HEAD":
                assert answer.json()["code"].endswith("_not_found")
                assert "canary" not in answer.text
    assert everything() == before


def test_lists_of_others_hold_nothing_of_a_team(client, rivals, crew, owned, body, subtests):
    hidden = [crew.id, "canary", *(value for name, value in owned.parameters.items() if name not in NOBODYS)]
    for method, path in protected(*Scope):
        if method == "GET" and "{" not in path:
            with subtests.test(path=path):
                answer = client.get(path, headers=rivals.headers)
                assert answer.status_code == 200
                assert [value for value in hidden if value in answer.text] == []
    cancelled = client.post("/v1/jobs/cancel", json={"ids": [owned.parameters["job_id"]]}, headers=rivals.headers)
    assert cancelled.json()["data"][0]["error"]["code"] == "job_not_found"
    borrowed = body | {"validation": {"uri": f"upload:{owned.parameters['upload_id']}"}}
    assert client.post("/v1/jobs", json=borrowed, headers=rivals.headers).status_code == 422


def test_a_place_in_the_queue_tells_nothing_of_the_jobs_before_it(client, crew, rivals, stage, body):
    secret = stage.queued(name="the crew's plans", labels={"project": "secret"})
    mine = client.post("/v1/jobs", json=body, headers=rivals.headers).json()["id"]
    for path in ("/v1/queue", f"/v1/jobs/{mine}"):
        text = client.get(path, headers=rivals.headers).text
        assert [hidden for hidden in (secret, crew.id, "crew", "plans", "secret") if hidden in text] == []
    assert client.get(f"/v1/jobs/{mine}", headers=rivals.headers).json()["queue"]["position"] == 2


def test_a_key_that_ends_while_it_is_used_is_refused_at_once(client, key, sessions):
    text = key()
    assert client.get("/v1/me", headers=bearer(text)).status_code == 200
    with session_scope(sessions) as session:
        ended = update(ApiKey).where(ApiKey.id == text.split("_")[1])
        session.execute(ended.values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    assert client.get("/v1/me", headers=bearer(text)).status_code == 401


def test_pages_send_whoever_has_not_signed_in_to_the_form(app, client, crew, owned, subtests):
    pages = {route for route in routes(app) if route not in ACCESS and not route.startswith("HEAD")} - OPEN_PAGES
    for route in sorted(pages):
        method, path = route.split(" ")
        address = "/".join("x" if part.startswith("{") else part for part in path.split("/"))
        for headers in ({}, crew.headers, {"Cookie": "axformer_session=x"}):
            with subtests.test(route=route, headers=list(headers)):
                answer = client.request(method, address, headers=headers, follow_redirects=False)
                assert answer.status_code in (303, 400, 401)
                assert answer.status_code != 303 or answer.headers["Location"].startswith(SIGN_IN)
