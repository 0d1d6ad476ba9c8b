"""The worker's logs: its own lines as everywhere in the service, and those of Celery and other libraries in the same form."""

import logging

import structlog

from store import logs

_QUIET = (
    # They log whole addresses, which may hold signatures.
    *("aiobotocore", "botocore", "filelock", "fsspec", "httpcore2", "httpx2", "s3fs", "urllib3"),
    # They log each message, most of which find nothing to do; the jobs are logged by us.
    *("celery.app.trace", "celery.worker.request", "celery.worker.strategy"),
)
"""Loggers of which only the warnings are wanted."""


def configure_logs() -> None:
    """Send all logs of this process to standard error, one JSON object a line."""
    logs.configure_logs()
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    )
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
