"""The page that describes the API is for everybody and loads nothing from elsewhere."""

import re

import pytest


@pytest.fixture
def page(visitor):
    answer = visitor.get("/docs")
    assert answer.status_code == 200
    return answer


def test_it_loads_only_what_the_service_has(page, visitor):
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    loaded = re.findall(r'(?:src|rel="\w+" href)="([^"]+)"', page.text)
    assert len(loaded) == 4
    assert all(address.startswith("/static/") and visitor.get(address).status_code == 200 for address in loaded)


def test_all_pages_lead_to_it(visitor, member):
    for path in ("/sign-in", "/", "/no-such-page"):
        assert '<a href="/docs">API</a>' in member.get(path).text
