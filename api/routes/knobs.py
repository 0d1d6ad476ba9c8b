"""``/v1/knobs``: what a job's ``config`` may hold."""

from fastapi import APIRouter

from api.openapi import answer
from api.services.knobs import list_knobs
from axformer.wire.knobs import KnobsRead

router = APIRouter(prefix="/knobs", tags=["knobs"])


@router.get("", responses={200: answer("All knobs and presets.", "knobs")})
def get_knobs() -> KnobsRead:
    """List the knobs of a pass: defaults, what is accepted, and why. Needs no key."""
    return list_knobs()
