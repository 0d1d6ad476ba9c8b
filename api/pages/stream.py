"""Changes of an open page as server-sent events: the parts of the page that differ from what was sent last.

The server renders a part the same way for the page and for the stream, so scripts only insert it. Every look checks the key
again: a revoked key sees nothing more.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm.exc import ObjectDeletedError
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from api.errors import NoSuchObjectError
from api.resources import Resources

_RECONNECT_MS = 2000  # what browsers wait before they connect again
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # proxies shall pass it on at once
_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True)
class PageState:
    """A page as it is at one moment."""

    parts: Mapping[str, str]
    """HTML by the id of the element that it fills."""
    is_last: bool = False
    """Whether nothing will change after this."""


Wait = Callable[[], Awaitable[None]]
"""Ends when it is time for the next look."""
Looker = Callable[[], PageState | None]
"""Looks, in a thread; None if the visitor may no longer see the page, which NoSuchObjectError says too."""


def at_intervals(resources: Resources) -> Wait:
    """Looks with ``page_look_seconds`` between them."""

    async def wait() -> None:
        await asyncio.sleep(resources.settings.page_look_seconds)

    return wait


def answer(resources: Resources, look: Looker, wait: Wait) -> StreamingResponse:
    """The stream as a response."""
    return StreamingResponse(_stream(resources, look, wait), media_type="text/event-stream", headers=_HEADERS)


async def _stream(resources: Resources, look: Looker, wait: Wait) -> AsyncIterator[bytes]:
    yield format_sse_event(retry=_RECONNECT_MS)
    sent: dict[str, str] = {}
    said = time.monotonic()
    while not resources.is_stopping:
        try:
            seen = await run_in_threadpool(look)
            if seen is None:
                yield format_sse_event(data_str="{}", event="gone")
                return
            changed = {name: html for name, html in seen.parts.items() if sent.get(name) != html}
            if changed:
                yield format_sse_event(data_str=json.dumps(changed), event="parts")
                sent.update(changed)
                said = time.monotonic()
            elif time.monotonic() - said >= resources.settings.event_heartbeat_seconds:
                yield KEEPALIVE_COMMENT
                said = time.monotonic()
            if seen.is_last:
                yield format_sse_event(data_str="{}", event="end")
                return
            await wait()
        except (NoSuchObjectError, ObjectDeletedError):  # deleted while its page is open, or in the middle of a look
            yield format_sse_event(data_str="{}", event="gone")
            return
        except (OperationalError, InterfaceError, PoolTimeoutError) as error:
            _LOG.warning("page_stream_waits_for_database", error=type(error).__name__)
            await asyncio.sleep(resources.settings.page_look_seconds)
