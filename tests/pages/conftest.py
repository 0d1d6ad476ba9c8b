"""A visitor who does with forms and cookies what a browser does, and a signed-in one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.api.conftest import Crew, app, client, crew, file_root, make_trial, outage, rivals, settings, stage

__all__ = ["app", "client", "crew", "file_root", "make_trial", "outage", "rivals", "settings", "stage"]

ORIGIN = "http://testserver"
HTML = {"Accept": "text/html"}
_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]+)"')


@dataclass(frozen=True)
class Visitor:
    """A browser without scripts."""

    client: TestClient

    def get(self, path: str, **headers: str) -> Any:
        """A page."""
        return self.client.get(path, headers=HTML | headers)

    def token(self, path: str) -> str:
        """What the forms of a page bring back."""
        found = _TOKEN.search(self.get(path).text)
        assert found is not None, f"{path} has no form"
        return found[1]

    def post(self, path: str, token: str, origin: str | None = ORIGIN, **fields: Any) -> Any:
        """Send a form, and do not follow where it leads."""
        headers = HTML | ({"Origin": origin} if origin else {})
        return self.client.post(path, data={"form_token": token, **fields}, headers=headers, follow_redirects=False)

    def sign_in(self, key: str, **fields: str) -> Any:
        """Send a key."""
        return self.post("/sign-in", self.token("/sign-in"), key=key, **fields)


@pytest.fixture
def visitor(client: TestClient) -> Visitor:
    """Somebody who has not signed in."""
    return Visitor(client)


@pytest.fixture
def member(visitor: Visitor, crew: Crew) -> Visitor:
    """Somebody of the crew who has."""
    assert visitor.sign_in(crew.key).status_code == 303
    return visitor


@pytest.fixture
def rival(app: FastAPI, rivals: Crew) -> Iterator[Visitor]:
    """Somebody of another team."""
    with TestClient(app, raise_server_exceptions=False) as other:
        visitor = Visitor(other)
        assert visitor.sign_in(rivals.key).status_code == 303
        yield visitor
