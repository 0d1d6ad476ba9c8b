"""What an answer is sent as: the format that its caller's ``Accept`` header wants (RFC 9110, section 12.5.1), and fast JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from starlette.responses import Response

from api.errors import NotAcceptableError


def as_json(model: BaseModel, headers: dict[str, str] | None = None) -> Response:
    """The answer that FastAPI would build from the model, but without validating it again, and in the endpoint's thread."""
    return Response(model.model_dump_json(), headers=headers, media_type="application/json")


@dataclass(frozen=True)
class _Wish:
    kind: str
    subkind: str
    weight: float

    def covers(self, kind: str, subkind: str) -> bool:
        return self.kind in ("*", kind) and self.subkind in ("*", subkind)

    @property
    def precision(self) -> int:
        return (self.kind != "*") + (self.subkind != "*")


def choose(accept: str | None, offers: Sequence[str]) -> str:
    """The offer with the greatest weight; the earlier one among equals, the first where nothing is asked for.

    Raises:
        NotAcceptableError: none of them is wanted.
    """
    wishes = [_wish(part) for part in (accept or "*/*").split(",") if part.strip()] or [_wish("*/*")]
    weights = {offer: _weight(offer, wishes) for offer in offers}
    best = max(offers, key=lambda offer: weights[offer])
    if weights[best] <= 0:
        raise NotAcceptableError(f"'Accept: {accept}' is not on offer; there are {', '.join(offers)}")
    return best


def _weight(offer: str, wishes: Sequence[_Wish]) -> float:
    kind, _, subkind = offer.partition("/")
    covering = [wish for wish in wishes if wish.covers(kind, subkind)]
    return max(covering, key=lambda wish: wish.precision).weight if covering else 0.0


def _wish(text: str) -> _Wish:
    media_range, *parameters = (part.strip().lower() for part in text.split(";"))
    kind, _, subkind = media_range.partition("/")
    weight = next(
        (value for name, _, value in (item.partition("=") for item in parameters) if name.strip() == "q"), "1"
    )
    try:
        return _Wish(kind, subkind, float(weight))
    except ValueError:
        return _Wish(kind, subkind, 0.0)
