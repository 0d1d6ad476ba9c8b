"""Structured logs of the service's own loggers and of libraries, the same in every process.

A line is one JSON object, or readable text on a terminal, with everything that is bound to the context (``job_id``,
``request_id``). Tracebacks omit the values of variables, which may be keys, tokens or a customer's text.
"""

import logging
import sys

import structlog
from structlog.types import Processor

_QUIET = (
    # These log whole addresses, which may hold signatures.
    *("aiobotocore", "amqp", "botocore", "filelock", "fsspec", "httpcore2", "httpx2", "s3fs", "urllib3"),
    # These log every message, most of which find nothing to do; the worker logs the jobs itself.
    *("celery.app.trace", "celery.worker.request", "celery.worker.strategy"),
)
"""Loggers of libraries of which only the warnings are wanted."""


def configure_logs(*, always_json: bool = False) -> None:
    """Send all logs of this process to standard error: readable lines on a terminal, otherwise one JSON object per line.

    Args:
        always_json: whether to write JSON to a terminal too.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    ending: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if sys.stderr.isatty() and not always_json:
        ending += [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    else:
        ending += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    handler = logging.StreamHandler()
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=ending))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
