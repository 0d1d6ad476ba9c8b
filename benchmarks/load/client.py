"""A small HTTP client for asyncio, so that what makes the load takes little of the two cores that it is measured on."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_KEPT_SECONDS = 3.0
"""How long an idle connection is trusted; the server closes it after five seconds."""
_CHUNK_END = 2  # each chunk ends with a line break


@dataclass
class Client:
    """Requests to one server. Connections are kept and used again."""

    url: str
    idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)
    """Since when, by the monotonic clock, and the connection."""

    async def request(self, method: str, path: str, key: str, body: Any = None) -> tuple[int, bytes]:
        """Send a request and give status and body of the answer."""
        reader, writer = await self._connection()
        content = b"" if body is None else json.dumps(body).encode()
        writer.write(_head(method, path, key, len(content)) + content)
        status, headers = await _read_head(reader)
        answer = await _read_body(reader, headers)
        self.idle.append((time.monotonic(), reader, writer))
        return status, answer

    async def events(self, path: str, key: str, last: asyncio.Event) -> int:
        """Read a stream of server-sent events until ``last``; how many came."""
        reader, writer = await self._connect()
        writer.write(_head("GET", path, key, 0, accept="text/event-stream"))
        status, _ = await _read_head(reader)
        if status != 200:
            raise RuntimeError(f"an event stream was answered with {status}")
        count = 0
        ended = asyncio.ensure_future(last.wait())
        while not last.is_set():
            line = asyncio.ensure_future(reader.readline())
            await asyncio.wait({line, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not line.done():
                line.cancel()
            elif not line.result():
                break
            elif line.result().startswith(b"event:"):
                count += 1
        ended.cancel()
        writer.close()
        return count

    def close(self) -> None:
        """Close all connections."""
        for _, _, writer in self.idle:
            writer.close()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection that was used last, if the server has it still, or a new one."""
        while self.idle:
            since, reader, writer = self.idle.pop()
            if time.monotonic() - since < _KEPT_SECONDS and not reader.at_eof():
                return reader, writer
            writer.close()
        return await self._connect()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(self.url)
        return await asyncio.open_connection(address.hostname, address.port)


def _head(method: str, path: str, key: str, length: int, accept: str = "application/json") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {key}",
        f"Accept: {accept}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[bytes, bytes]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    fields = (line.partition(b":") for line in lines[1:] if line)
    return int(lines[0].split(b" ")[1]), {name.lower(): value.strip() for name, _, value in fields}


async def _read_body(reader: asyncio.StreamReader, headers: dict[bytes, bytes]) -> bytes:
    if b"content-length" in headers:
        return await reader.readexactly(int(headers[b"content-length"]))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(_CHUNK_END)
    await reader.readline()
    return b"".join(parts)
