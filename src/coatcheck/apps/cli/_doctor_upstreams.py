"""Whether servers behind a proxy start and answer, as the proxy itself would ask them."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Sequence
from importlib.metadata import version
from typing import cast

from ..proxy._channel import Channel, ServerDownError
from ..proxy._config import UpstreamSpec
from ..proxy._eras import MODERN_VERSIONS, Opening
from ..proxy._messages import METHOD_NOT_FOUND, Json, RpcError
from ..proxy._process import ProcessChannel
from ..proxy._reader import READER
from ..proxy._servers_file import Refused
from ..proxy._upstream import Facts, Known, Upstream
from ._doctor import Finding

_LONGEST_SECONDS = 60.0
_SAID_CHARS = 300
_MOST_PAGES = 1_000

_REMEDIES = (
    ("No such file", "Is it installed, and on the PATH that your host has? An absolute path is."),
    ("Permission denied", "Let this user run it: chmod +x, or name its interpreter."),
    ("401", "It asks for a sign-in: let the host keep this server, or give a token in headers."),
    ("403", "It refuses this token: look at headers."),
    ("404", "There is no MCP at this address: many serve it at /mcp."),
    ("did not answer", "Does it wait for something, a sign-in or a download? Start it by hand."),
    ("onnect", "Is it running, and is its address right?"),
)
_REMEDY = "Start it by hand and look at what it says; its arguments and variables may be wrong."


async def examine_upstreams(
    specs: Sequence[UpstreamSpec | Refused], *, longest_seconds: float = _LONGEST_SECONDS
) -> list[Finding]:
    """Start each server, list its tools, and end it again.

    Args:
        specs: The servers, which are looked at side by side; of those that cannot be started as
            they are written down it is told why.
        longest_seconds: How long one may take.
    """
    return await asyncio.gather(*(_examined(spec, longest_seconds) for spec in specs))


class _Deaf:
    """A client without anything that a server could ask for."""

    async def heard(self, upstream: Upstream, method: str, params: Json) -> None:
        pass

    async def asked(self, upstream: Upstream, method: str, params: Json) -> Json:
        del upstream, params
        raise RpcError(METHOD_NOT_FOUND, f"This client answers no {method}.")

    async def came_up(self, upstream: Upstream, *, is_first: bool) -> None:
        pass


async def _examined(spec: UpstreamSpec | Refused, longest_seconds: float) -> Finding:
    if isinstance(spec, Refused):
        return Finding(_check(spec), "failed", str(spec.error).rstrip("."), spec.error.hint)
    said: deque[str] = deque(maxlen=3)
    opening = Opening(
        era="modern",
        version=MODERN_VERSIONS[-1],
        client={"name": "coatcheck doctor", "version": version("coatcheck")},
    )
    upstream = Upstream(
        spec,
        opening=opening,
        start=lambda spec: _start(spec, said),
        listens=_Deaf(),
        known=Known(),
    )
    begun = time.monotonic()
    try:
        async with asyncio.timeout(longest_seconds):
            facts = await upstream.ready()
            started = time.monotonic() - begun
            names = await _tool_names(upstream, opening)
    except ServerDownError as error:
        return _failed(spec, str(error), said)
    except RpcError as error:
        return _failed(spec, f"It lists no tools: {error.message}", said)
    except TimeoutError:
        return _failed(spec, f"It did not answer within {longest_seconds:g} seconds", said)
    finally:
        await upstream.close()
    return _found(spec, facts, names, started)


async def _start(spec: UpstreamSpec, said: deque[str]) -> Channel:
    if spec.command is not None:
        return await ProcessChannel.start(spec, os.environ, said.append)
    from ..proxy._http_upstream import HttpChannel

    return HttpChannel(spec, said.append)


async def _tool_names(upstream: Upstream, opening: Opening) -> list[str]:
    names: list[str] = []
    cursor: object = None
    for _ in range(_MOST_PAGES):
        params: Json = {"_meta": opening.envelope()}
        params |= {} if cursor is None else {"cursor": cursor}
        page = (await upstream.request("tools/list", params)).result
        tools = page.get("tools")
        for tool in cast("list[object]", tools) if isinstance(tools, list) else []:
            name = cast("Json", tool).get("name") if isinstance(tool, dict) else None
            names += [name] if isinstance(name, str) else []
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    return names


def _found(spec: UpstreamSpec, facts: Facts, names: Sequence[str], started: float) -> Finding:
    told = f"{len(names)} tools, there after {started:.1f} s, speaks {facts.version}"
    if not names:
        return Finding(
            _check(spec), "warning", told, "It has nothing to call: look at its arguments."
        )
    if READER in names:
        return Finding(
            _check(spec),
            "warning",
            f"{told}; it has a tool of the name of ours: {READER}",
            "Behind --config with several servers both are listed; alone only ours is.",
        )
    return Finding(_check(spec), "ok", told)


def _failed(spec: UpstreamSpec, reason: str, said: deque[str]) -> Finding:
    # A pause before the next try is no matter of ours.
    told = reason.partition(". It is tried again")[0].rstrip(".")
    last = " ".join(line.strip() for line in said)[-_SAID_CHARS:]
    remedy = next((remedy for sign, remedy in _REMEDIES if sign in told), _REMEDY)
    return Finding(_check(spec), "failed", f"{told}; it said: {last}" if last else told, remedy)


def _check(spec: UpstreamSpec | Refused) -> str:
    return f"server {spec.name}"
