"""The way to a server, which loses what a test tells it to lose."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

_MOST_BYTES = 1 << 16


@dataclass(slots=True, kw_only=True)
class Wire:
    """A way to a server on this machine. Get one with `wire_to`.

    Args:
        server_port: Where what comes in is handed on to.
        port: Where it comes in.
    """

    server_port: int
    port: int = 0
    lost: int = 0
    """How many connections were cut."""
    carrying: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])
    """What goes on, a task for each connection."""
    _losing: bytes = field(default=b"", init=False)
    _is_heard: bool = field(default=False, init=False)
    _times: int = field(default=0, init=False)

    def lose(self, words: bytes, *, answer: bool = False, times: int = 1) -> None:
        """Cut the connection that next says `words`.

        Args:
            words: What is looked for in each piece that comes in.
            answer: Whether the server still gets the piece, and only its answer is lost.
            times: How many connections are cut.
        """
        self._losing, self._is_heard, self._times = words, answer, times

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand on what one connection says, and what it is answered."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self.carrying.add(task)
        task.add_done_callback(self.carrying.discard)
        answers, there = await asyncio.open_connection("127.0.0.1", self.server_port)
        is_mute, is_done = asyncio.Event(), asyncio.Event()

        async def answer() -> None:
            while said := await answers.read(_MOST_BYTES):
                if is_mute.is_set():
                    is_done.set()
                else:
                    writer.write(said)

        answering = asyncio.create_task(answer())
        try:
            while said := await reader.read(_MOST_BYTES):
                if not self._times or self._losing not in said:
                    there.write(said)
                    continue
                self._times -= 1
                self.lost += 1
                is_mute.set()
                if self._is_heard:
                    there.write(said)
                    await is_done.wait()
                break
        except (ConnectionError, asyncio.CancelledError):
            pass  # asyncio of Python 3.11 logs it as an error where a task like this is cancelled
        finally:
            answering.cancel()
            writer.transport.abort()
            there.transport.abort()


@asynccontextmanager
async def wire_to(server_port: int) -> AsyncGenerator[Wire, None]:
    """Open a way to a server for the time of a `with`, on this event loop."""
    wire = Wire(server_port=server_port)
    server = await asyncio.start_server(wire.carry, "127.0.0.1")
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        for task in tuple(wire.carrying):
            task.cancel()
        await asyncio.gather(*wire.carrying)
