"""The best of the formats on offer."""

import pytest

from api.errors import NotAcceptableError
from api.http.answers import choose

OFFERS = ("application/json", "text/csv", "application/x-ndjson")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "application/json"),
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("TEXT/CSV ; q=1", "text/csv"),
        ("text/*", "text/csv"),
        ("application/*", "application/json"),
        ("application/json;q=0.5, text/csv;q=0.9", "text/csv"),
        ("application/json;q=0, */*;q=0.1", "text/csv"),
        ("text/html, application/xhtml+xml, */*;q=0.8", "application/json"),
        ("application/json;q=much, text/csv;q=0.1", "text/csv"),
    ],
)
def test_choice(accept, chosen):
    assert choose(accept, OFFERS) == chosen


@pytest.mark.parametrize("accept", ["application/xml", "application/json;q=0", "nonsense"])
def test_nothing_on_offer_is_an_error_that_names_the_offers(accept):
    with pytest.raises(NotAcceptableError, match=r"text/csv"):
        choose(accept, OFFERS)
