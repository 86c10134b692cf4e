"""The proxy as a program: from its configuration to its end."""

import asyncio
import ctypes
import os
import select
import signal
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

from ...bank import open_bank, store_at
from ...stores import SupportsTtl
from .._printable import one_line
from ._acts import Acts
from ._answers import Proxy
from ._channel import Channel
from ._config import HttpFront, ProxyConfig, UpstreamSpec
from ._guard import Guard
from ._process import ProcessChannel
from ._stdio import StdioFront, own_stdio
from ._upstream import Known

_LOOK_SECONDS = 2.0
_GROWN_BYTES = 96 * 1024 * 1024
"""Less would give back what the next result needs: new memory is the larger part of its time."""
_ERRORS = 2
_LOGGED_BYTES = 4_000
"""Of a line; a pipe that takes anything takes so much without waiting."""


async def run_proxy(config: ProxyConfig) -> None:
    """Serve until the client goes, or the process is told to end. Leaves nothing behind.

    Raises:
        ValueError: The address of the store is wrong.
        ImportError: The store needs an extra.
        OSError: The journal, or the port of the front, cannot be opened.
    """
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        bank = await stack.enter_async_context(
            open_bank(config.store, limits=config.settings.limits, journal=config.journal)
        )
        guard = Guard()
        await guard.start()
        stack.push_async_callback(guard.close)
        proxy = Proxy(
            acts=Acts(bank, config.settings, config.scope, forgets=await _forgets(config.store)),
            specs=config.upstreams,
            prefixed=config.prefixed,
            start=partial(_start, guard=guard),
            log=log,
            known={spec.name: Known() for spec in config.upstreams},
        )
        memory = asyncio.create_task(_give_back_memory())
        stack.callback(memory.cancel)
        serving = asyncio.create_task(_serve(config, proxy))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, serving.cancel)
            stack.callback(loop.remove_signal_handler, number)
        with suppress(asyncio.CancelledError):  # to be told to end is no fault
            await serving


async def _give_back_memory() -> None:
    """Let free memory go back to the system, each time that the process has grown.

    By itself glibc keeps the holes between buffers of many sizes: memory that only grows.
    """
    with suppress(AttributeError, OSError):  # other systems lack `malloc_trim` or `/proc`
        trim = ctypes.CDLL(None).malloc_trim
        kept_bytes = 0
        while True:
            if _resident_bytes() > kept_bytes + _GROWN_BYTES:
                trim(0)
                kept_bytes = _resident_bytes()
            await asyncio.sleep(_LOOK_SECONDS)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _forgets(address: str) -> bool:
    """Return whether the store at an address removes by itself what is old."""
    store = store_at(address)
    try:
        return isinstance(store, SupportsTtl)
    finally:
        await store.close()


async def _serve(config: ProxyConfig, proxy: Proxy) -> None:
    if isinstance(config.front, HttpFront):
        from ._http_front import serve_http

        await serve_http(proxy, config.front)
        return
    async with own_stdio() as (reader, writer):
        await StdioFront(proxy, reader, writer).serve()


async def _start(spec: UpstreamSpec, *, guard: Guard) -> Channel:
    if spec.url is not None:
        from ._http_upstream import HttpChannel

        return HttpChannel(spec, log)
    return await ProcessChannel.start(spec, os.environ, log, guard)


def log(line: str) -> None:
    """Write one line to standard error; where nobody takes it, it is dropped, never waited for.

    What servers wrote stands in it, and drives no terminal.
    """
    text = one_line(line.rstrip()[:_LOGGED_BYTES]).encode()[:_LOGGED_BYTES] + b"\n"
    with suppress(OSError, ValueError):
        if select.select([], [_ERRORS], [], 0)[1]:
            os.write(_ERRORS, text)
