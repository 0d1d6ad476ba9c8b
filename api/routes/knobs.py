"""``/v1/knobs``: the knobs of a job's ``config``."""

from fastapi import APIRouter

from api.openapi import answer
from axformer.wire.knob_list import KnobsRead, list_knobs

router = APIRouter(prefix="/knobs", tags=["knobs"])


@router.get("", summary="List knobs and presets", responses={200: answer("All knobs and presets.", "knobs")})
def get_knobs() -> KnobsRead:
    """List the knobs of a pass with their defaults, accepted values and reasons. Needs no key."""
    return list_knobs()
