"""A server that runs as a program and is spoken to over its standard input and output."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import IO

from ._channel import Log, ServerDownError
from ._config import UpstreamSpec
from ._guard import Guard
from ._lines import LineReader, LineWriter, read_lines, write_lines
from ._messages import MalformedError, Message, read_message

_LEAVES_SECONDS = 2.0
"""How long a server may take to leave once its input is closed, and again once it is asked to."""
_FOLLOWS_SECONDS = 0.5
"""How long what a server started may outlive it."""
_POLL_SECONDS = 0.02
_LOGGED_CHARS = 2_000


class ProcessChannel:
    """One run of a server's program, in a process group of its own, that leaves nothing behind."""

    def __init__(
        self,
        name: str,
        process: Process,
        reader: LineReader,
        writer: LineWriter,
        *,
        log: Log,
        guard: Guard | None,
    ) -> None:
        self._name = name
        self._process = process
        self._reader = reader
        self._writer = writer
        self._log = log
        self._guard = guard
        if guard is not None:
            guard.add(process.pid)
        self._errors: asyncio.Task[None] | None = None
        self._ending = asyncio.create_task(self._see_end())

    @classmethod
    async def start(
        cls,
        spec: UpstreamSpec,
        environment: Mapping[str, str],
        log: Log,
        guard: Guard | None = None,
    ) -> "ProcessChannel":
        """Start the program of a server. Who is cancelled meanwhile leaves none behind.

        Args:
            spec: Which server.
            environment: That of the proxy, to which the server's own is added.
            log: Takes what it writes to its standard error.
            guard: Ends it where the proxy cannot.

        Raises:
            ServerDownError: It cannot be started.
        """
        starting = asyncio.create_task(cls._started(spec, environment, log, guard))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Half started, a program has pipes that nobody closes, and no one who ends it.
            with suppress(ServerDownError):
                await (await starting).close()
            raise

    @classmethod
    async def _started(
        cls, spec: UpstreamSpec, environment: Mapping[str, str], log: Log, guard: Guard | None
    ) -> "ProcessChannel":
        command = spec.command or ""
        pipes = [_pipe() for _ in range(3)]
        (child_in, to_child), (from_child, child_out), (errors, child_errors) = pipes
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *spec.args,
                stdin=child_in,
                stdout=child_out,
                stderr=child_errors,
                env={**environment, **spec.env},
                cwd=spec.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            for file in (to_child, from_child, errors):
                file.close()
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ServerDownError(f"{command!r} cannot be started: {reason}") from error
        finally:
            for file in (child_in, child_out, child_errors):
                file.close()
        channel = cls(
            spec.name,
            process,
            await read_lines(from_child),
            await write_lines(to_child),
            log=log,
            guard=guard,
        )
        channel._errors = asyncio.create_task(channel._pass_on(await read_lines(errors)))
        return channel

    @property
    def pid(self) -> int:
        """The process, and its group."""
        return self._process.pid

    @property
    def ended(self) -> str:
        status = self._process.returncode
        if status is None:
            return "it closed its output"
        if status < 0:
            with suppress(ValueError):
                return f"it was ended by {signal.Signals(-status).name}"
        return f"it ended with status {status}"

    async def send(self, line: bytes) -> None:
        await self._writer.send(line)

    async def messages(self) -> AsyncIterator[Message | MalformedError]:
        async for line in self._reader:
            try:
                message: Message | MalformedError = read_message(line)
            except MalformedError as error:
                if self._reader.is_torn:
                    break  # it ended while it wrote, which whoever waits is told
                message = error
                self._log(f"{self._name}: no message on its output: {_shown(line)}")
            yield message
        # For `ended` to know how.
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._process.wait()), _FOLLOWS_SECONDS)

    async def _see_end(self) -> None:
        """End the reading with the server: what it left behind may hold its output for ever."""
        await self._process.wait()
        self._reader.end()

    async def close(self) -> None:
        """Close its input, on which servers leave; then end its group, politely first."""
        leave = asyncio.create_task(self._leave())
        try:
            await asyncio.shield(leave)
        except asyncio.CancelledError:
            await leave  # a server is not left behind because someone is in a hurry
            raise

    async def _leave(self) -> None:
        self._writer.close()
        if not await self._has_left(_LEAVES_SECONDS):
            self._signal(signal.SIGTERM)
            if not await self._has_left(_LEAVES_SECONDS):
                self._signal(signal.SIGKILL)
                await self._process.wait()
        await self._end_followers()
        if self._guard is not None:
            self._guard.remove(self._process.pid)
        self._writer.abort()
        self._reader.close()
        await self._ending
        if self._errors is not None:
            self._errors.cancel()
            await asyncio.wait([self._errors])

    async def _has_left(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._process.wait()), seconds)
        return self._process.returncode is not None

    async def _end_followers(self) -> None:
        """End what the server has started and left: npx is three processes."""
        for number, seconds in ((0, _FOLLOWS_SECONDS), (signal.SIGTERM, _LEAVES_SECONDS)):
            if number and not self._signal(number):
                return
            until = asyncio.get_running_loop().time() + seconds
            while self._signal(0):
                if asyncio.get_running_loop().time() > until:
                    break
                await asyncio.sleep(_POLL_SECONDS)
            else:
                return
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> bool:
        """Send a signal to the group. Return whether there is anyone in it."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS refuses where all are zombies
            return False
        return True

    async def _pass_on(self, errors: LineReader) -> None:
        try:
            async for line in errors:
                self._log(f"{self._name}: {_shown(line)}")
        finally:
            errors.close()


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0)


def _shown(line: bytes) -> str:
    return line[:_LOGGED_CHARS].decode("utf-8", "replace").rstrip()
