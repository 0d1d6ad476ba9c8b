"""The API described for people. It needs no key, since ``/openapi.json`` needs none, and no script."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.pages.deps import PagesDep
from api.reference import Reader

router = APIRouter()


@router.get("/docs")
def show_reference(request: Request, pages: PagesDep) -> Response:
    """Every route with what it takes and answers."""

    def read() -> Mapping[str, Any]:
        document = request.app.openapi()
        reader = Reader(document)
        return {"about": document["info"]["description"], "subjects": reader.subjects(), "shapes": reader.shapes()}

    return pages.unchanging("reference.html", read)
