"""The front over standard input and output: one client, for as long as it stays."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import IO, Literal, cast

from ._answers import Identity, Proxy
from ._eras import is_modern, opening_of
from ._lines import LineReader, LineWriter, read_lines, write_lines
from ._messages import (
    INVALID_REQUEST,
    MalformedError,
    Message,
    RpcError,
    error_line,
    read_message,
    result_line,
)
from ._session import Session

FINISH_SECONDS = 30.0
"""How long requests may go on once the client sends no more: it may still read."""
_FLUSH_SECONDS = 0.5
"""How long what was sent may wait to be read."""


class StdioFront:
    """Serves the client at the other end of two pipes, in the era that it opens with."""

    def __init__(self, proxy: Proxy, reader: LineReader, writer: LineWriter) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._sessions: dict[str, Session] = {}
        self._runs = proxy.acts.client_runs(proxy.log)
        self._answering: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Answer the client until it goes, then end all servers."""
        reading = asyncio.create_task(self._read())
        lost = asyncio.create_task(self._writer.is_lost.wait())
        try:
            await asyncio.wait({reading, lost}, return_when=asyncio.FIRST_COMPLETED)
            await self._finish(lost)
        finally:
            tasks = [reading, lost, *self._answering]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await asyncio.gather(*(each.close() for each in self._sessions.values()))
            if self._ending:
                await asyncio.wait(self._ending)
            if self._runs is not None:
                await self._runs.close()

    async def _finish(self, lost: "asyncio.Task[Literal[True]]") -> None:
        """Let requests that are under way be answered, unless nobody reads it any more."""
        for each in self._sessions.values():
            each.hear_no_more()
        loop = asyncio.get_running_loop()
        until = loop.time() + FINISH_SECONDS
        while self._answering and not lost.done() and loop.time() < until:
            await asyncio.wait(
                {lost, *self._answering},
                timeout=until - loop.time(),
                return_when=asyncio.FIRST_COMPLETED,
            )

    async def _read(self) -> None:
        async for line in self._reader:
            try:
                await self._take(read_message(line))
            except MalformedError as error:
                await self._send(error_line(error.id, RpcError(error.code, str(error))))
            except ConnectionError:
                return
            except Exception as error:  # noqa: BLE001 - one message may fail, the proxy may not
                self._proxy.log(f"a message failed: {type(error).__name__}: {error}")

    async def _take(self, message: Message) -> None:
        if message.method is None:
            for each in self._sessions.values():
                each.settle(message)
        elif message.id is None:
            for each in list(self._sessions.values()):
                await each.hear(message.method, message.params or {})
        else:
            try:
                session = self._session_for(message)
            except RpcError as error:
                await self._send(error_line(message.id, error))
                return
            if session is None:
                await self._send(result_line(message.id, {}))
                return
            task = asyncio.create_task(self._answer(session.answer(message, self._writer)))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, answering: "asyncio.Task[bytes]") -> None:
        try:
            line = await answering
        except asyncio.CancelledError:
            answering.cancel()
            return  # a client that cancels wants no answer
        await self._send(line)

    async def _send(self, line: bytes) -> None:
        try:
            await self._writer.send(line)
        except ConnectionError:
            return  # it has gone, which `serve` sees

    def _session_for(self, request: Message) -> Session | None:
        """Return whose request it is; None of a ping before anything else.

        Raises:
            RpcError: The client has to introduce itself first.
        """
        method = cast("str", request.method)
        if method == "initialize":
            opening_of(method, request.params)  # a malformed one ends nothing
            before = self._sessions.pop("handshake", None)
            if before is not None:
                task = asyncio.create_task(before.close())
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
        elif is_modern(request.params):
            if "modern" in self._sessions:
                opening_of(method, request.params)  # each says its version
                return self._sessions["modern"]
        elif "handshake" in self._sessions:
            return self._sessions["handshake"]
        elif method == "ping":
            return None
        else:
            raise RpcError(
                INVALID_REQUEST,
                "Introduce yourself: by initialize, or by the envelope of 2026-07-28 in _meta.",
            )
        opening = opening_of(method, request.params)
        identity = Identity(runs=self._runs)
        session = Session(self._proxy, opening=opening, outlet=self._writer, identity=identity)
        self._sessions[opening.era] = session
        return session


@asynccontextmanager
async def own_stdio() -> AsyncGenerator[tuple[LineReader, LineWriter], None]:
    """Return this process's standard input and output as lines.

    Meanwhile nothing else gets there: what some library prints goes to standard error, and no
    child reads from the client.
    """
    sys.stdout.flush()
    from_client, to_client = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    was_blocking = {each: os.get_blocking(each) for each in (from_client, to_client)}
    back = {0: os.dup(from_client), 1: os.dup(to_client)}
    reader = await read_lines(_opened(from_client, "rb"))
    writer = await write_lines(_opened(to_client, "wb"))
    try:
        yield reader, writer
    finally:
        reader.close()
        await _flushed(writer)
        for number, kept in back.items():
            # Whoever shares a terminal with us expects it as it was.
            os.set_blocking(kept, was_blocking[from_client if number == 0 else to_client])
            os.dup2(kept, number)
            os.close(kept)


def _opened(number: int, mode: str) -> IO[bytes]:
    return cast("IO[bytes]", os.fdopen(number, mode, 0))


async def _flushed(writer: LineWriter) -> None:
    """Send what is waiting, unless the client takes nothing any more."""
    writer.close()
    try:
        await asyncio.wait_for(writer.is_lost.wait(), _FLUSH_SECONDS)
    except TimeoutError:
        writer.abort()
        await writer.is_lost.wait()
