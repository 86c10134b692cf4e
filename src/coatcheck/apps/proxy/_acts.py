"""What the proxy does to the messages it passes on. Knows no transport, and no era."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from ...bank import Bank
from ...errors import CoatcheckError, UnknownPointerError
from ...mirror import Mirror, holds_pointer
from ...records import OWN_TOOLS, names_pointer
from ...tools import Tool, retrieval_tools
from ._blocks import Rule
from ._channel import Log
from ._client_runs import ClientRuns
from ._reader import READER, answer, definition, failed, is_ours
from ._resources import TEMPLATE, read_artifact
from ._results import shown_result, without_forged
from ._schemas import ToolSchemas
from ._scope import Scope, local_scope, scope_of
from ._settings import Settings
from ._unmatched import Unmatched

INSTRUCTIONS = "Large results come as pointers: pass one as an argument, or use retrieve_context."
"""What models are told, behind the instructions of the upstreams."""

_SCOPES = 256
"""Scopes whose banks are kept ready."""

Json = dict[str, Any]
Listing = Callable[[], Awaitable[Sequence[Mapping[str, object]]]]


@dataclass(frozen=True, slots=True)
class _Desk:
    """What serves the calls of one scope."""

    bank: Bank
    mirror: Mirror
    reader: Tool


class Acts:
    """Widens tools, resolves pointers in their arguments, offloads their results, and reads back.

    One for a proxy, whatever its fronts and upstreams. Messages are dicts of JSON values as they
    stand on the wire; none that is handed in is changed, and what needs no change comes back as
    the same object. With `Settings.dry_run` all comes back so, and only the journal is told.

    Args:
        bank: Where results are kept; each scope is one of its scopes. It stays its owner's.
        settings: How much is shown, and which tools are left alone.
        scope: Of a proxy that one user starts, over stdio; None is that of `local_scope`.
        forgets: Whether the store removes by itself what is old, as Redis does.
    """

    def __init__(
        self, bank: Bank, settings: Settings, scope: str | None = None, *, forgets: bool = False
    ) -> None:
        self._bank = bank
        self._settings = settings
        self._local = local_scope() if scope is None else scope
        self._schemas = ToolSchemas(Mirror(bank, settings.limits))
        self._desks: OrderedDict[str, _Desk] = OrderedDict()
        self._told: set[str] = set()
        self.unmatched = Unmatched(settings)
        """What is set for tools that no upstream lists."""
        self._listed: set[str] = set()
        self._ours: set[tuple[str, str]] = set()
        """Tools of upstreams that are Coatcheck's: these take pointers of their own."""
        self._further: dict[str, None] = {}
        self._is_off = settings.dry_run
        self._forgets = forgets
        self.instructions = "" if self._is_off else INSTRUCTIONS
        """Stands behind the instructions of the upstreams."""
        (reader,) = retrieval_tools(bank)
        self.own_tools: list[dict[str, object]] = [] if self._is_off else [definition(reader)]
        """Listed behind the tools of the upstreams, always the same bytes."""
        self.resource_templates: list[dict[str, object]] = [] if self._is_off else [dict(TEMPLATE)]
        """Listed behind those of the upstreams."""

    def scope(
        self,
        *,
        principal: str | None = None,
        meta: Mapping[str, object] | None = None,
        session_id: str | None = None,
        transport: str = "stdio",
    ) -> Scope:
        """Return whose artifacts a request may see.

        Args:
            principal: Who signed in, over HTTP.
            meta: The `_meta` of the request.
            session_id: Of the handshake era, over HTTP.
            transport: Of the front, ``stdio`` or ``http``.

        Raises:
            InvalidArgumentError: The scope in `meta` breaks its rule.
        """
        return scope_of(
            principal=principal,
            meta=meta,
            session_id=session_id,
            transport=transport,
            local=self._local,
            anonymous_ttl_seconds=self._settings.anonymous_ttl_seconds,
        )

    def client_runs(self, log: Log) -> ClientRuns | None:
        """Return what keeps all that a client is shown until it goes.

        None where nothing takes anything away: no call pays for what is never needed.

        Args:
            log: Told where the store fails.
        """
        limits = self._bank.limits
        has_quota = limits.scope_bytes is not None or limits.store_bytes is not None
        if self._is_off or not (has_quota or self._forgets):
            return None
        return ClientRuns(self._bank, log)

    def tools(
        self,
        tools: Iterable[Mapping[str, object]],
        *,
        upstream: str,
        prefixed: bool = False,
        listed_as: Mapping[str, str] | None = None,
    ) -> list[dict[str, object]]:
        """Return the tools of an upstream as they are to be listed, under their own names.

        Args:
            tools: As the upstream lists them.
            upstream: Its name.
            prefixed: Whether they will be listed under other names than their own. If not, one
                with the name of ours is left out, and the log tells so once.
            listed_as: The name of each that a host will see, where it is another.
        """
        shown_as = listed_as or {}
        listed: list[dict[str, object]] = []
        self._listed.add(upstream)
        for tool in tools:
            name = str(tool.get("name"))
            self.unmatched.listed(upstream, name, shown_as.get(name))
            if is_ours(tool):
                self._ours.add((upstream, name))
                if self.is_own(name):
                    self._further[upstream] = None
            else:
                self._ours.discard((upstream, name))
            if not prefixed and self.is_own(name):
                self._tell_of_collision(upstream, name)
            elif self._passes(upstream, name, shown_as.get(name)):
                listed.append(dict(tool))
            else:
                keeps_output = name in self._settings.limits.never
                listed.append(self._schemas.listed(upstream, tool, keeps_output=keeps_output))
        return listed

    def is_own(self, name: str) -> bool:
        """Return whether a listed tool is the proxy's own."""
        return not self._is_off and name == READER

    async def call_own(self, scope: Scope, params: Mapping[str, object]) -> dict[str, object]:
        """Return the result of a call of our own tool, given the `params` of ``tools/call``."""
        desk = self._desk(scope)
        return await answer(
            desk.bank,
            desk.reader,
            params,
            shows_images=bool(self._settings.image_bytes),
            is_anonymous=scope.is_anonymous,
        )

    async def readers_further_in(self, scope: Scope, params: Mapping[str, object]) -> list[str]:
        """Return the upstreams to ask in place of `call_own`, by their own tool of that name.

        Where an upstream is such a proxy too, its envelopes pass as they are, and name our tool. So
        what is asked for by a pointer that is unknown here may be known there.
        """
        asked = params.get("arguments")
        pointer = cast("Json", asked).get("artifactId") if isinstance(asked, dict) else None
        if not self._further or not names_pointer(pointer):
            return []
        bank = self._desk(scope).bank
        try:
            is_here = await bank.find(str(pointer).partition("#")[0]) is not None
        except (CoatcheckError, OSError):
            return []
        return [] if is_here else [*self._further]

    async def arguments(
        self,
        scope: Scope,
        upstream: str,
        tool: str,
        arguments: dict[str, Any],
        *,
        listing: Listing | None = None,
        listed_as: str | None = None,
    ) -> dict[str, Any]:
        """Return the arguments for an upstream's tool: what each pointer stands for in its place.

        Args:
            scope: Of the caller.
            upstream: The name of the upstream.
            tool: The tool's own name there.
            arguments: As the client sent them; the same object comes back where no pointer is
                among them.
            listing: Asks the upstream for its tools. Called only where a pointer is among the
                arguments and they were not listed yet, as happens after a restart.
            listed_as: The tool's name as the client sees it, for the journal; None is its own.

        Raises:
            CoatcheckError: A pointer stands for nothing, or for what the tool does not take. The
                upstream is not to be called: answer with `failure`.
        """
        if self._is_off or not holds_pointer(arguments):
            return arguments
        mirror = self._desk(scope).mirror
        try:
            if upstream not in self._listed and listing is not None:
                self.tools(await listing(), upstream=upstream, prefixed=True)
            if self._passes(upstream, tool, listed_as):
                return arguments
            inspected = await mirror.inspect(
                arguments,
                self._schemas.of(upstream, tool),
                fits=partial(self._schemas.fits, upstream, tool),
                leaves_unknown=upstream in self._further,
            )
            if not inspected.pointers:
                return arguments
            # What is left for an upstream that is such a proxy too, is for that to judge.
            if upstream not in self._further or not holds_pointer(inspected.arguments):
                self._schemas.check(upstream, tool, inspected.arguments)
        except CoatcheckError as error:
            mirror.note(listed_as or tool, (), given=(arguments,), is_error=True)
            if scope.is_anonymous and isinstance(error, UnknownPointerError):
                raise UnknownPointerError(error.pointer) from None
            raise
        return inspected.arguments

    def failure(self, error: CoatcheckError | OSError) -> dict[str, object]:
        """Return what a model reads of an error, as the result of its call."""
        return failed(error)

    async def result(
        self,
        scope: Scope,
        upstream: str,
        tool: str,
        result: dict[str, Any],
        *,
        given: Mapping[str, object] | None = None,
        listed_as: str | None = None,
        size_hint: int | None = None,
        links: bool = True,
    ) -> dict[str, Any]:
        """Return a tool's result as a model should see it; see `shown_result`.

        Args:
            scope: Of the caller.
            upstream: The name of the upstream.
            tool: The tool's own name there.
            result: Of ``tools/call``. What is not complete, as where input is required, comes
                back as it is.
            given: The arguments as the client sent them, of which the journal keeps the pointers.
            listed_as: The tool's name as the client sees it, for the journal; None is its own.
            size_hint: Bytes of the message on the wire, where known: nothing in it is larger.
            links: Whether the client knows `resource_link`, as it does from 2025-06-18 on.
        """
        result = without_forged(result)
        settings, mirror = self._settings, self._desk(scope).mirror
        names = (upstream, tool, listed_as)
        if (
            self._is_ours(upstream, tool)
            or tool in settings.limits.never
            or settings.excludes(*names)
        ):
            return result
        limit_bytes, image_bytes = settings.inline_limit(*names), settings.image_limit(*names)
        least = limit_bytes if image_bytes is None else min(limit_bytes, image_bytes)
        if size_hint is not None and size_hint < least and self._bank.journal is None:
            return result
        if result.get("resultType", "complete") != "complete":
            return result
        rule = Rule(
            mirror=mirror,
            tool=tool,
            limit_bytes=limit_bytes,
            image_bytes=image_bytes,
            ttl_seconds=scope.ttl_seconds,
            links=links,
        )
        shown, measured = await shown_result(result, rule)
        is_error = result.get("isError") is True
        noted_as = listed_as or tool
        mirror.note(noted_as, measured, given=(given,) if given else (), is_error=is_error)
        return result if self._is_off else shown

    async def read_resource(self, scope: Scope, uri: str) -> dict[str, object] | None:
        """Return the answer to ``resources/read`` where the address is ours, else None.

        What is unknown here may be known to an upstream that is such a proxy too.

        Raises:
            CoatcheckError: Nothing stands behind it, or it is over 32 MiB and read whole.
        """
        if self._is_off:
            return None
        try:
            return await read_artifact(self._desk(scope).bank, uri)
        except UnknownPointerError as error:
            if self._further:
                return None
            if scope.is_anonymous:
                raise UnknownPointerError(error.pointer) from None
            raise

    def _passes(self, upstream: str, tool: str, listed_as: str | None) -> bool:
        """Return whether definition and arguments of a tool stay what they are."""
        return (
            self._is_off
            or self._is_ours(upstream, tool)
            or self._settings.excludes(upstream, tool, listed_as)
        )

    def _is_ours(self, upstream: str, tool: str) -> bool:
        """Return whether a tool of an upstream is Coatcheck's; by its name before it was listed."""
        if upstream in self._listed:
            return (upstream, tool) in self._ours
        return tool in OWN_TOOLS

    def _desk(self, scope: Scope) -> _Desk:
        desk = self._desks.get(scope.name)
        if desk is None:
            bank = self._bank.scoped(scope.name)
            (reader,) = retrieval_tools(bank)
            desk = self._desks[scope.name] = _Desk(
                bank, Mirror(bank, self._settings.limits, own=()), reader
            )
            if len(self._desks) > _SCOPES:
                self._desks.popitem(last=False)
        else:
            self._desks.move_to_end(scope.name)
        return desk

    def _tell_of_collision(self, upstream: str, name: str) -> None:
        if upstream in self._told:
            return
        self._told.add(upstream)
        logging.getLogger("coatcheck.proxy").warning(
            "%s has a tool %s of its own, which is not listed: ours is. Behind --config with"
            " several servers both are.",
            upstream,
            name,
        )
