"""A line of few bytes a second: a TCP proxy that reads no faster than it may pass on."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

_PIECE_BYTES = 16 * 1024
_BUFFER_BYTES = 32 * 1024


class SlowLink:
    """Counts what it carried from the server, and how often it was dialled."""

    def __init__(self, *, to_port: int, bytes_per_second: int) -> None:
        self.carried = 0
        self.dialled = 0
        self._to_port = to_port
        self._bytes_per_second = bytes_per_second

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.dialled += 1
        far = socket.socket()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)  # else it holds all
        far.setblocking(False)
        await asyncio.get_running_loop().sock_connect(far, ("127.0.0.1", self._to_port))
        from_far, to_far = await asyncio.open_connection(sock=far, limit=_BUFFER_BYTES)
        up = asyncio.create_task(self._pass(reader, to_far))
        down = asyncio.create_task(self._pass_slowly(from_far, writer))
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        for each in (up, down):
            each.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
        for end in (writer, to_far):
            end.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE_BYTES):
            writer.write(data)
            await writer.drain()

    async def _pass_slowly(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(_PIECE_BYTES):
            await asyncio.sleep(len(data) / self._bytes_per_second)
            self.carried += len(data)
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def slow_link(*, to_port: int, bytes_per_second: int) -> AsyncIterator[tuple[int, SlowLink]]:
    """The port to dial instead, and the link."""
    link = SlowLink(to_port=to_port, bytes_per_second=bytes_per_second)
    server = await asyncio.start_server(link.serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], link
    finally:
        server.close()
