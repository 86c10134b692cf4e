"""What all servers of a client offer together, and which server each name belongs to."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

from ._acts import Acts
from ._channel import ServerDownError
from ._messages import INVALID_PARAMS, Json, RpcError
from ._names import expose, prefixes_of
from ._upstream import Upstream

_MOST_PAGES = 1_000
"""Of one list of one server; a server that always knows a next page is not followed for ever."""
_MOST_EMPTY = 100
"""Pages in a row without anything on them; then there is no more."""
_DEEPEST = 128
"""Levels of an item of a list. Hosts read about 200, and pointers take some of them."""
_MOST_URIS = 100_000

Ask = Callable[[Upstream, str, Json], Awaitable[Json]]
"""Returns the result of a request of the proxy's own, in the era of the client."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of what servers offer."""

    method: str
    key: str
    """Of the list in its result."""
    capability: str


TOOLS = Kind("tools/list", "tools", "tools")
PROMPTS = Kind("prompts/list", "prompts", "prompts")
RESOURCES = Kind("resources/list", "resources", "resources")
TEMPLATES = Kind("resources/templates/list", "resourceTemplates", "resources")
TASKS = Kind("tasks/list", "tasks", "tasks")
KINDS = {kind.method: kind for kind in (TOOLS, PROMPTS, RESOURCES, TEMPLATES)}


def items_of(result: Mapping[str, object], kind: Kind) -> list[Json]:
    """Return what a result lists of a kind, without what is no object, or too deep for a host.

    A host that cannot read one item of a list reads none of it, whatever server the others are of.
    """
    listed = result.get(kind.key)
    if not isinstance(listed, list):
        return []
    items = [cast("Json", item) for item in cast("list[object]", listed) if isinstance(item, dict)]
    return [item for item in items if not _is_deep(item)]


class Catalog:
    """The lists of several servers as one, under names that tell whose each is.

    Args:
        upstreams: All servers, in the order of the configuration, which is that of the lists.
        acts: What the proxy does to tools.
        ask: Asks a server.
        patience_seconds: How long a server is waited for.
    """

    def __init__(
        self, upstreams: Sequence[Upstream], acts: Acts, ask: Ask, *, patience_seconds: float
    ) -> None:
        self._upstreams = upstreams
        self._acts = acts
        self._ask = ask
        self._patience_seconds = patience_seconds
        self._prefixes = prefixes_of([each.name for each in upstreams])
        self._lists: dict[tuple[str, str], list[Json]] = {}
        self._owners: dict[str, dict[str, tuple[str, str]]] = {}
        self._missing: set[str] = set()
        self._uris: dict[str, str] = {}

    def miss(self, upstream: Upstream) -> None:
        """Note that the client was answered without this server."""
        self._missing.add(upstream.name)

    def was_missing(self, upstream: Upstream) -> bool:
        """Return whether a list was answered without this server. It is told once."""
        missing = upstream.name in self._missing
        self._missing.discard(upstream.name)
        return missing

    @property
    def is_whole(self) -> bool:
        """Whether no server was missing when it was listed."""
        return not self._missing

    async def everything(self, kind: Kind) -> list[Json]:
        """Return all that all servers list of a kind, under the names that clients see.

        Raises:
            ServerDownError: No server is there.
        """
        lists = await self._all_lists(kind)
        named = {
            self._prefixes[server]: [str(item.get("name")) for item in items]
            for server, items in lists.items()
        }
        own = [str(tool["name"]) for tool in self._acts.own_tools] if kind is TOOLS else []
        exposed = expose(named, own)
        servers = {prefix: server for server, prefix in self._prefixes.items()}
        self._owners[kind.method] = {
            shown: (servers[prefix], name) for shown, (prefix, name) in exposed.items()
        }
        shown_by_owner = {owner: shown for shown, owner in self._owners[kind.method].items()}
        merged: list[Json] = []
        for server, listed in lists.items():
            items = listed
            if kind is TOOLS:
                seen_as = {
                    name: each for (of, name), each in shown_by_owner.items() if of == server
                }
                items = self._acts.tools(listed, upstream=server, prefixed=True, listed_as=seen_as)
            for item in items:
                shown = shown_by_owner.pop((server, str(item.get("name"))), None)
                if shown is not None:  # else listed twice
                    merged.append({**item, "name": shown})
        return merged

    async def owner(self, kind: Kind, shown: str) -> tuple[Upstream, str]:
        """Return the server behind a name that clients see, and its own name there.

        Raises:
            RpcError: No server has it.
            ServerDownError: The server that may have it is not there.
        """
        found = self._owners.get(kind.method, {}).get(shown)
        if found is None:
            await self.everything(kind)
            found = self._owners[kind.method].get(shown)
        if found is None and await self._waited_for(kind, shown):
            await self.everything(kind)
            found = self._owners[kind.method].get(shown)
        if found is None:
            raise RpcError(INVALID_PARAMS, f"Unknown {kind.key.removesuffix('s')}: {shown}")
        server, name = found
        return next(each for each in self._upstreams if each.name == server), name

    async def page(self, kind: Kind, cursor: object) -> Json:
        """Return one page of what servers list under addresses, which have no prefix.

        Raises:
            RpcError: The cursor is none of ours.
            ServerDownError: No server is there.
        """
        index, inner = _place(cursor)
        empty = 0
        while index < len(self._upstreams):
            upstream = self._upstreams[index]
            result: Json = {}
            try:
                async with self._in_time(upstream):
                    result = await self._page(kind, upstream, inner)
            except RpcError:
                pass  # it lists nothing of the kind
            except ServerDownError:
                self.miss(upstream)
            items = items_of(result, kind)
            self._learn(upstream, items)
            following = _cursor_of(result)
            empty = 0 if items else empty + 1
            if following is None or following == inner or empty > _MOST_EMPTY:
                index, inner, empty = index + 1, None, 0
            else:
                inner = following
            if items or index >= len(self._upstreams):
                page: Json = {kind.key: items}
                if index < len(self._upstreams):
                    page["nextCursor"] = _cursor(index, inner)
                return page
        return {kind.key: []}

    async def raw_tools(self, upstream: Upstream) -> list[Json]:
        """Return the tools of one server as it lists them.

        Raises:
            RpcError: It does not list them.
            ServerDownError: It is not there.
        """
        return await self._whole(TOOLS, upstream)

    def by_address(self, uri: object) -> list[list[Upstream]]:
        """Return where a resource was seen, where it was, and then all other servers."""
        known = self._uris.get(uri) if isinstance(uri, str) else None
        seen = [each for each in self._upstreams if each.name == known]
        others = [each for each in self._upstreams if each.name != known]
        return [among for among in (seen, others) if among]

    def belongs(self, uri: object, upstream: Upstream) -> None:
        """Remember that a resource is a server's."""
        if isinstance(uri, str):
            if len(self._uris) >= _MOST_URIS:
                self._uris.clear()  # it saves trying, no more
            self._uris[uri] = upstream.name

    async def _all_lists(self, kind: Kind) -> dict[str, list[Json]]:
        found = await asyncio.gather(
            *(self._whole(kind, upstream) for upstream in self._upstreams), return_exceptions=True
        )
        lists: dict[str, list[Json]] = {}
        down: ServerDownError | None = None
        for upstream, items in zip(self._upstreams, found, strict=True):
            place = (kind.method, upstream.name)
            if isinstance(items, list):
                self._lists[place] = items
            elif isinstance(items, ServerDownError):
                down = items
                self.miss(upstream)
            elif isinstance(items, RpcError):
                self._lists.setdefault(place, [])
            else:
                raise items
            # What is not there now is listed as it was: its calls tell what is wrong.
            lists[upstream.name] = self._lists.get(place, [])
        if down is not None and len(self._missing) == len(self._upstreams) and not self._lists:
            raise down
        return lists

    async def _whole(self, kind: Kind, upstream: Upstream) -> list[Json]:
        items: list[Json] = []
        cursor: str | None = None
        async with self._in_time(upstream):
            for _ in range(_MOST_PAGES):
                result = await self._page(kind, upstream, cursor)
                items += items_of(result, kind)
                before, cursor = cursor, _cursor_of(result)
                if cursor is None or cursor == before:
                    break
        return items

    async def _page(self, kind: Kind, upstream: Upstream, cursor: object) -> Json:
        facts = await upstream.ready(self._patience_seconds)
        if kind.capability not in facts.capabilities:
            return {kind.key: []}
        return await self._ask(upstream, kind.method, {} if cursor is None else {"cursor": cursor})

    @asynccontextmanager
    async def _in_time(self, upstream: Upstream) -> AsyncGenerator[None]:
        """Wait for a list no longer than the others should.

        Raises:
            ServerDownError: The server is not there, or did not list all in time.
        """
        await upstream.ready(self._patience_seconds)
        try:
            async with asyncio.timeout(self._patience_seconds):
                yield
        except TimeoutError as error:
            raise ServerDownError(
                f"Server {upstream.name!r} did not list what it has within"
                f" {self._patience_seconds:g} seconds."
            ) from error

    async def _waited_for(self, kind: Kind, shown: str) -> bool:
        """Wait for the server whose prefix a name has, where it has not listed anything yet.

        Returns whether it is there now.

        Raises:
            ServerDownError: It is not there, and does not come.
        """
        by_length = sorted(self._upstreams, key=lambda each: -len(self._prefixes[each.name]))
        for upstream in by_length:
            if shown.startswith(f"{self._prefixes[upstream.name]}_"):
                await upstream.ready()
                return (kind.method, upstream.name) not in self._lists
        return False

    def _learn(self, upstream: Upstream, items: Sequence[Json]) -> None:
        for item in items:
            self.belongs(item.get("uri", item.get("uriTemplate")), upstream)


def _is_deep(item: object) -> bool:
    level = [item]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for node in level:
            if isinstance(node, dict):
                inner += cast("dict[str, object]", node).values()
            elif isinstance(node, list):
                inner += cast("list[object]", node)
        if not inner:
            return False
        level = inner
    return True


def _cursor_of(result: Mapping[str, object]) -> str | None:
    following = result.get("nextCursor")
    return following if isinstance(following, str) else None


def _cursor(index: int, inner: object) -> str:
    return base64.urlsafe_b64encode(json.dumps([index, inner]).encode()).decode()


def _place(cursor: object) -> tuple[int, object]:
    if cursor is None:
        return 0, None
    try:
        index, inner = json.loads(base64.urlsafe_b64decode(str(cursor)))
    except (ValueError, TypeError) as error:
        raise RpcError(INVALID_PARAMS, "The cursor is unknown.") from error
    if not isinstance(index, int) or index < 0:
        raise RpcError(INVALID_PARAMS, "The cursor is unknown.")
    return index, cast("object", inner)
