"""Logs as lines of JSON on standard error, the same in every process of the service.

Tracebacks come without the values of variables, which may be keys, tokens or a customer's text.
"""

import logging
import sys

import structlog


def configure_logs() -> None:
    """Set up the logs of this process."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
