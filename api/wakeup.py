"""Wake the workers up. The message carries no data, since PostgreSQL knows what there is to do.

The message may be lost without harm; idle workers announce the job again.
"""

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from store.settings import Settings

WAKE_TASK = "worker.tasks.wake"
"""Name of the worker's task that looks for the next job."""
_LOG = structlog.get_logger(__name__)


class Wakeup:
    """Sends wake-up messages through the Celery broker, within a short time or not at all."""

    def __init__(self, settings: Settings) -> None:
        seconds = settings.wake_timeout_seconds
        self._seconds = seconds
        self._app = Celery("axformer-api", broker=settings.broker_url.get_secret_value(), set_as_current=False)
        self._app.conf.update(
            task_default_queue=settings.celery_queue,
            task_ignore_result=True,
            broker_connection_timeout=seconds,
            broker_transport_options={
                "socket_connect_timeout": seconds,
                "socket_timeout": seconds,
                "retry_on_timeout": False,
                "max_retries": 0,
            },
        )

    def wake(self) -> None:
        """Tell a worker to look for a job. Never raises, since a silent broker only delays the job."""
        try:
            self._app.send_task(WAKE_TASK, ignore_result=True, retry=False)
        except (OperationalError, OSError) as error:
            _LOG.warning("broker_unavailable", error=type(error).__name__)

    def check(self) -> None:
        """See whether the broker answers.

        Raises:
            kombu.exceptions.OperationalError: it does not.
        """
        with self._app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=self._seconds)
