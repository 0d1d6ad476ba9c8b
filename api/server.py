"""The web server of the API: ``python -m api.server --host 0.0.0.0 --port 8000``. Uvicorn, with heads of requests bounded."""

import argparse
import sys

import uvicorn

from api.bounded_heads import BoundedHeadsProtocol

_DRAIN_SECONDS = 5
"""How long the API waits for open event streams when it ends; clients come back by themselves."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m api.server", description="Serve the API and its pages.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    given = parser.parse_args()
    uvicorn.run(
        "api.main:create_app",
        factory=True,
        host=given.host,
        port=given.port,
        workers=given.workers,
        http=BoundedHeadsProtocol,
        access_log=False,  # every request is logged with its id already
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
