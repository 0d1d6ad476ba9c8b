"""The only way to the store: ``python -m tests.faults.gate PORT STORE_PORT SECONDS``.

Killed, stopped and slowed, it is the store that is away, hangs or drips; what the store holds stays, as on the disk of a real
one."""

import asyncio
import sys

from store.system.processes import LOOPBACK

_PIECE = 2**16


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    try:
        while piece := await reader.read(_PIECE):
            await asyncio.sleep(seconds)
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass  # one side has gone, so the other is let go
    finally:
        writer.close()


async def _serve(port: int, store_port: int, seconds: float) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_store, to_store = await asyncio.open_connection(LOOPBACK, store_port)
        await asyncio.gather(_pass_on(reader, to_store, seconds), _pass_on(from_store, writer, seconds))

    async with await asyncio.start_server(connect, LOOPBACK, port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
