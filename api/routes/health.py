"""``/healthz``, ``/readyz`` and ``/metrics``, for the operators of the service.

The first two need no key. The metrics are counts over all teams, so they need a key, of any team; Prometheus sends it with
``authorization.credentials_file``.
"""

from fastapi import APIRouter, Response
from kombu.exceptions import OperationalError as BrokerError
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from sqlalchemy.exc import SQLAlchemyError

from api.deps import CallerDep, ReadingDep, ResourcesDep
from api.metrics import counted, stored
from api.openapi import Responses, answer, answers
from api.resources import Resources
from api.wakeup import Wakeup
from axformer import __version__
from axformer.wire.health import HealthRead, ReadyRead
from store.migrate import newest_revision
from store.repositories.revision import database_revision
from store.session import Sessions, session_scope
from store.settings import Settings
from store.system.disk import free_bytes

_OK = "ok"


def _ready(resources: Resources) -> ReadyRead:
    """Each part, ``ok`` or what is wrong with it; ``status`` is ``ok`` when all are."""
    database, migrations = _database(resources.sessions)
    broker = _broker(resources.wakeup)
    disk = _disk(resources.settings)
    status = _OK if database == migrations == broker == disk == _OK else "unavailable"
    return ReadyRead(status=status, database=database, migrations=migrations, broker=broker, disk=disk)


def _database(sessions: Sessions) -> tuple[str, str]:
    try:
        with session_scope(sessions) as session:
            found = database_revision(session)
    except SQLAlchemyError as error:
        return f"does not answer ({type(error).__name__})", "unknown, as the database does not answer"
    wanted = newest_revision()
    if found == wanted:
        return _OK, _OK
    return _OK, f"the schema is at {found}, this code needs {wanted}; run python -m store.migrate"


def _disk(settings: Settings) -> str:
    free, kept = free_bytes(settings.var_dir), settings.fetch.keep_free_bytes
    return _OK if free >= kept else f"has {free} bytes left, fewer than the {kept} that are kept free; make room"


def _broker(wakeup: Wakeup) -> str:
    try:
        wakeup.check()
    except (BrokerError, OSError) as error:
        return f"does not answer ({type(error).__name__})"
    return _OK


router = APIRouter(tags=["health"])

_READY: Responses = {
    200: answer("All parts are there.", "ready"),
    503: answer("A part is missing; its member says what is wrong.", "not_ready") | {"model": ReadyRead},
}
_METRICS = answers(200, "Counts in the text format of Prometheus.", None, 401)
_METRICS[200]["content"] = {"text/plain": {"example": 'axformer_jobs{state="queued"} 3.0\n'}}


@router.get(
    "/healthz", summary="See whether the process answers", responses={200: answer("The process answers.", "health")}
)
def get_health(resources: ResourcesDep) -> HealthRead:
    """See whether the process answers, the version of the service, and the key that its results are signed with."""
    return HealthRead(status=_OK, version=__version__, result_key=resources.result_key.public)


@router.get("/readyz", summary="See whether all parts are there", responses=_READY)
def get_readiness(resources: ResourcesDep, response: Response) -> ReadyRead:
    """See whether database, schema and broker are available."""
    ready = _ready(resources)
    if ready.status != _OK:
        response.status_code = 503
    return ready


@router.get("/metrics", summary="Read metrics", response_class=Response, responses=_METRICS)
def get_metrics(_: CallerDep, session: ReadingDep, resources: ResourcesDep) -> Response:
    """Read jobs by state, requests and their durations, for Prometheus."""
    text = counted(resources.registry) + stored(session)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)
