"""Readiness of the services that requests need: the database, its schema, the broker."""

from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy.exc import SQLAlchemyError

from api.resources import Resources
from api.wakeup import Wakeup
from axformer.wire.health import ReadyRead
from store.migrate import newest_revision
from store.repositories.revision import database_revision
from store.session import Sessions, session_scope

OK = "ok"


def ready(resources: Resources) -> ReadyRead:
    """Each part, ``ok`` or what is wrong with it; ``status`` is ``ok`` when all are."""
    database, migrations = _database(resources.sessions)
    broker = _broker(resources.wakeup)
    status = OK if database == migrations == broker == OK else "unavailable"
    return ReadyRead(status=status, database=database, migrations=migrations, broker=broker)


def _database(sessions: Sessions) -> tuple[str, str]:
    try:
        with session_scope(sessions) as session:
            found = database_revision(session)
    except SQLAlchemyError as error:
        return f"does not answer ({type(error).__name__})", "unknown, as the database does not answer"
    wanted = newest_revision()
    if found == wanted:
        return OK, OK
    return OK, f"the schema is at {found}, this code needs {wanted}; run python -m store.migrate"


def _broker(wakeup: Wakeup) -> str:
    try:
        wakeup.check()
    except (BrokerError, OSError) as error:
        return f"does not answer ({type(error).__name__})"
    return OK
