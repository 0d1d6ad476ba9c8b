"""The worker's logs: its own lines as everywhere in the service, and those of Celery and other libraries in the same form."""

import logging

from store import logs

_QUIET = (
    "aiobotocore",  # logs whole addresses, which may hold signatures
    # These log every message, most of which find nothing to do; the worker logs the jobs itself.
    *("celery.app.trace", "celery.worker.request", "celery.worker.strategy"),
)
"""Loggers of which only the warnings are wanted, besides those of :mod:`store.logs`."""


def configure_logs() -> None:
    """Send all logs of this process to standard error, one JSON object per line."""
    logs.configure_logs(always_json=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
