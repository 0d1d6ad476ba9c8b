"""Errors are pages for people, problems for programs; all pages carry the headers that keep them safe."""

import pytest

PAGES = ["/", "/sign-in"]


@pytest.mark.parametrize("path", PAGES)
def test_pages_run_no_script_but_our_own(member, path):
    headers = member.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", PAGES)
def test_pages_hold_no_script_or_style_of_their_own(member, path):
    text = member.get(path).text
    assert "style=" not in text
    assert "<style" not in text
    assert " onclick" not in text
    assert text.count("<script") == text.count('<script type="module" src="/static/')


def test_an_unknown_page_is_a_page(member):
    answer = member.get("/no-such-page")
    assert answer.status_code == 404
    assert "<h1>Not Found</h1>" in answer.text
    assert "To the board" in answer.text


def test_programs_get_problems_as_before(visitor):
    for path, accept in (("/no-such-page", "application/json"), ("/v1/nothing", "text/html")):
        answer = visitor.client.get(path, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_database_that_is_away_is_a_page_that_says_so(member, outage):
    with outage():
        answer = member.get("/")
    assert answer.status_code == 503
    assert "does not answer at the moment" in answer.text
    assert answer.headers["retry-after"] == "5"


def test_static_files_are_kept_for_ever_under_the_hash_of_their_content(visitor):
    text = visitor.get("/sign-in").text
    path = text.partition('<link rel="stylesheet" href="')[2].partition('"')[0]
    answer = visitor.client.get(path)
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    assert visitor.client.get("/static/000000000000/pages.css").status_code == 404
    for outside in ("/static/x/../../main.py", path.replace("pictures.css", "..%2fmount.py")):
        assert visitor.client.get(outside).status_code == 404
