"""The page of the API has all that the document says, for everybody, without scripts."""

import re
from html.parser import HTMLParser

import pytest


@pytest.fixture
def page(visitor):
    answer = visitor.get("/docs")
    assert answer.status_code == 200
    return answer


class Anchors(HTMLParser):
    """Ids of a page, and where its own links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        of = dict(attributes)
        self.ids += [of["id"]] if "id" in of else []
        self.links |= {of["href"]} if tag == "a" else set()
        self.loaded += [of[name] for name in ("src", "href") if name in of and tag not in ("a",)]


def test_it_needs_no_key_and_nothing_from_elsewhere(page):
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert all(address.startswith("/static/") for address in Anchors(page.text).loaded)


def test_every_link_of_its_own_leads_somewhere(page):
    found = Anchors(page.text)
    assert len(set(found.ids)) == len(found.ids)
    assert {link.removeprefix("#") for link in found.links if link.startswith("#")} - {"main"} <= set(found.ids)


def test_every_route_is_there_with_what_it_takes_and_answers(page, visitor):
    document = visitor.client.get("/openapi.json").json()
    articles = page.text.split("<article")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            words = f'<code class="method">{method.upper()}</code> <code>{path}</code>'
            (article,) = [one for one in articles if words in one]
            assert operation["summary"] in article.replace("&#39;", "'")
            assert all(f"<code>{parameter['name']}</code>" in article for parameter in operation.get("parameters", []))
            assert all(f"<code>{status}</code>" in article for status in operation["responses"])
            assert "<pre>curl " in article
            if "requestBody" in operation:
                assert next(iter(operation["requestBody"]["content"])) in article


def test_all_pages_lead_to_it(visitor, member):
    for path in ("/sign-in", "/", "/no-such-page"):
        assert '<a href="/docs">API</a>' in member.get(path).text


def test_code_in_words_is_marked_up(page):
    assert re.search("<code>Authorization: Bearer KEY</code>", page.text)
    assert "`" not in re.sub(r"<pre>.*?</pre>", "", page.text, flags=re.DOTALL)
