"""Mirrored tools: pointers in, envelopes out, and the tool in between runs unchanged."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from ..bank import Bank, as_text, parsed, portal
from ..content import Encoding, loads, weigh
from ..errors import InvalidArgumentError, StoreError, UnencodableValueError
from ..records import Artifact, Envelope, Limits
from ._offload import fitted, is_smaller, must_be_kept, readable, unencodable, unkept
from ._parameters import Parameters
from ._schema import schema_at, schema_types, widened
from ._slots import Argument

_PLAIN_TYPES = frozenset({str, bytes, dict, list, int, float, bool, type(None)})

_OWN_TOOLS = frozenset({"retrieve_context", "storeArtifact", "getArtifact", "listArtifacts"})
"""Names by which an adapter hands over the replies of our own tools, never to be offloaded."""

_log = logging.getLogger("coatcheck.mirror")


class Mirror:
    """What adapters use: resolves pointers among arguments, and offloads large results.

    Args:
        bank: Where results are kept, and pointers are looked up.
        limits: When a result is offloaded; None takes the bank's.
        inject: Values for parameters of these types, hidden from the model; None injects
            the bank.
        reader: The read tool that the model was given, None where it has none.
    """

    def __init__(
        self,
        bank: Bank,
        limits: Limits | None = None,
        *,
        inject: Mapping[type, object] | None = None,
        reader: str | None = "retrieve_context",
    ) -> None:
        self.bank = bank
        self.limits = limits or bank.limits
        self._inject: Mapping[type, object] = {Bank: bank} if inject is None else inject
        self._reader = reader
        self._own_tools = _OWN_TOOLS | {reader}

    def parameters(self, fn: Callable[..., object]) -> Parameters:
        """Return the parameters of a function, those of injected types hidden."""
        return Parameters(fn, self._inject)

    async def resolve(
        self, arguments: Mapping[str, object] | str, schema: Mapping[str, Any] | None = None
    ) -> dict[str, object]:
        """Return a call's arguments with what each pointer stands for in its place.

        Args:
            arguments: By name, or as the JSON text a model wrote. Not changed.
            schema: The tool's JSON schema: a place declared as text gets the payload's
                text, one declared as anything else the payload parsed.

        Raises:
            InvalidArgumentError: The text is no JSON object.
            UnknownPointerError, ExpiredPointerError: Nothing stands behind a pointer.
            StoreError: The store failed.
        """
        given = _parsed_arguments(arguments) if isinstance(arguments, str) else dict(arguments)
        argument = Argument(given)
        await argument.fetch(self.bank)
        if schema is not None:
            root = schema
            argument.fill(
                lambda slot: _as_schema(slot.found, schema_at(root, slot.path, root), root)
            )
        return cast("dict[str, object]", argument.value)

    async def offload(
        self,
        value: object,
        tool: str | None = None,
        call_id: str | None = None,
        *,
        is_error: bool = False,
    ) -> object:
        """Return a result as the model should see it: itself, or an `Envelope`.

        A result that cannot be kept is never replaced by a pointer: it passes whole up to
        200,000 characters, above that in part with a notice.

        Args:
            value: What the tool returned.
            tool: Its name, for per-tool limits, and for `Artifact.tool`.
            call_id: Banks a replay of the same call to the same pointer, and names the
                artifact ``<tool>_<call id>``.
            is_error: Whether the value is the text of a failure; the envelope says so.
        """
        if tool in self._own_tools:
            return value  # bounded by its page, which must not come back as a pointer
        limit_bytes = self.limits.inline_limit(tool)
        decided = self.decide(value, tool, limit_bytes)
        if not isinstance(decided, Encoding):
            return decided
        return await self.keep(
            value, decided, tool, call_id, limit_bytes=limit_bytes, is_error=is_error
        )

    def decide(self, value: object, tool: str | None, limit_bytes: int) -> object:
        """Return what to show of a result, or its `Encoding` where it must be kept first."""
        if isinstance(value, Artifact):
            return Envelope.of(value, reader=self._reader)
        if isinstance(value, Envelope):
            return value
        if tool in self.limits.never:
            return readable(value)
        try:
            encoding = weigh(value, limit_bytes)
        except UnencodableValueError as error:
            return unencodable(value, error)
        if encoding is None:
            return value
        return encoding if must_be_kept(value, encoding, limit_bytes) else readable(value)

    async def keep(
        self,
        value: object,
        encoding: Encoding,
        tool: str | None,
        call_id: str | None = None,
        *,
        limit_bytes: int,
        preview_chars: int | None = None,
        is_error: bool = False,
    ) -> object:
        """Bank a result and return its envelope; the result where that is not smaller."""
        shown_chars = self.limits.preview_chars if preview_chars is None else preview_chars
        try:
            artifact = await self.bank.put(
                encoding,
                name=None if call_id is None else f"{tool or 'tool'}_{call_id}",
                kind="tool-output",
                key=None if call_id is None else f"{tool}\n{call_id}",
                preview_chars=shown_chars,
                shown_chars=shown_chars,
                tool=tool,
                is_error=is_error,
            )
        except StoreError as error:
            _log.warning("a result of %s was not kept: %s", tool or "a tool", error)
            return readable(unkept(value))
        envelope = Envelope.of(artifact, reader=self._reader, is_error=is_error)
        if not limit_bytes:
            return envelope
        envelope = fitted(envelope, encoding, artifact.length_chars)
        return envelope if is_smaller(envelope) else readable(value)

    def schema(self, json_schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool's JSON schema, its array and object parameters open to pointers."""
        return widened(json_schema)

    def wrap(
        self,
        fn: Callable[..., object],
        *,
        inline_bytes: int | None = None,
        preview_chars: int | None = None,
        to_model_output: Callable[[Any], object] | None = None,
    ) -> Callable[..., Any]:
        """Return `fn` mirrored; see `mirror`."""
        tool = _MirroredTool(self, fn, inline_bytes, preview_chars, to_model_output)
        return tool.waiting() if _is_async(fn) else tool.blocking()


class _MirroredTool:
    """One callable, mirrored. Small results and plain arguments take the quick path."""

    def __init__(
        self,
        owner: Mirror,
        fn: Callable[..., object],
        inline_bytes: int | None,
        preview_chars: int | None,
        to_model_output: Callable[[Any], object] | None,
    ) -> None:
        self._owner = owner
        self._fn = fn
        self._name = getattr(fn, "__name__", None) or type(fn).__name__
        self._limit_bytes = (
            owner.limits.inline_limit(self._name) if inline_bytes is None else inline_bytes
        )
        self._preview_chars = preview_chars
        self._to_model_output = to_model_output
        self._parameters = owner.parameters(fn)

    def waiting(self) -> Callable[..., Any]:
        """Return the mirrored form of an async function."""
        parameters, bank = self._parameters, self._owner.bank
        fn = cast("Callable[..., Awaitable[object]]", self._fn)

        async def mirrored(*args: Any, **kwargs: Any) -> object:
            if not parameters.are_settled(args, kwargs):
                call = parameters.bound(args, kwargs)
                if call.has_pointers:
                    await call.fetch(bank)
                args, kwargs = call.arrived()
            result = await fn(*args, **kwargs)
            if self._to_model_output is not None:
                result = await self._model_output(result)
            return await self._shown(result)

        return self._dressed(mirrored)

    def blocking(self) -> Callable[..., Any]:
        """Return the mirrored form of a sync function; it waits on the portal thread."""
        parameters, bank, fn = self._parameters, self._owner.bank, self._fn

        def mirrored(*args: Any, **kwargs: Any) -> object:
            if not parameters.are_settled(args, kwargs):
                call = parameters.bound(args, kwargs)
                if call.has_pointers:
                    portal().run(call.fetch(bank))
                args, kwargs = call.arrived()
            result = fn(*args, **kwargs)
            if type(result) not in _PLAIN_TYPES and inspect.isawaitable(result):
                return self._shown_later(result)
            if self._to_model_output is not None:
                result = portal().run(self._model_output(result))
            decided = self._decided(result)
            if not isinstance(decided, Encoding):
                return decided
            return portal().run(self._kept(result, decided))

        return self._dressed(mirrored)

    async def _model_output(self, result: object) -> object:
        shrink = cast("Callable[[object], object]", self._to_model_output)
        shrunk = shrink(result)
        if inspect.isawaitable(shrunk):
            return await cast("Awaitable[object]", shrunk)
        return shrunk

    async def _shown_later(self, result: Awaitable[object]) -> object:
        awaited = await result
        if self._to_model_output is not None:
            awaited = await self._model_output(awaited)
        return await self._shown(awaited)

    async def _shown(self, result: object) -> object:
        decided = self._decided(result)
        if not isinstance(decided, Encoding):
            return decided
        return await self._kept(result, decided)

    def _decided(self, result: object) -> object:
        return self._owner.decide(result, self._name, self._limit_bytes)

    async def _kept(self, result: object, encoding: Encoding) -> object:
        return await self._owner.keep(
            result,
            encoding,
            self._name,
            limit_bytes=self._limit_bytes,
            preview_chars=self._preview_chars,
        )

    def _dressed(self, mirrored: Callable[..., Any]) -> Callable[..., Any]:
        """Give `mirrored` the looks of the function.

        No ``__wrapped__``: it would make a framework see the types from before.
        """
        named: Any = mirrored
        named.__name__ = self._name
        named.__qualname__ = getattr(self._fn, "__qualname__", self._name)
        named.__doc__ = self._fn.__doc__
        named.__module__ = getattr(self._fn, "__module__", __name__)
        named.__signature__ = self._parameters.signature
        named.__annotations__ = self._parameters.annotations
        return mirrored


def mirror(
    fn: Callable[..., object],
    bank: Bank,
    *,
    inline_bytes: int | None = None,
    preview_chars: int | None = None,
    to_model_output: Callable[[Any], object] | None = None,
    limits: Limits | None = None,
) -> Callable[..., Any]:
    """Return a function like `fn` that takes pointers for arguments, and may return an envelope.

    For any framework: name, docstring and signature are those of `fn`, but for annotations
    that also let a pointer in. Sync stays sync. Arguments are validated once, as the declared
    types, after pointers are resolved; parameters of type `Bank` get the bank and are hidden;
    `Verbatim` ones get pointers as text. What `fn` raises passes through.

    Args:
        fn: A function, method or other callable, sync or async.
        bank: Where results are kept, and pointers are looked up.
        inline_bytes: From this encoded size on a result is offloaded; 0 always.
        preview_chars: Longest preview in its envelopes.
        to_model_output: Makes of a result what the model should see, before its size is
            checked; may be async.
        limits: Where other limits than the bank's should hold.

    >>> import asyncio
    >>> from coatcheck.stores import MemoryStore
    >>> bank = Bank(MemoryStore())
    >>> async def rows() -> list[int]:
    ...     return list(range(20_000))
    >>> def total(items: list[int]) -> int:
    ...     return sum(items)
    >>> envelope = asyncio.run(mirror(rows, bank)())
    >>> envelope.size_bytes, mirror(total, bank)(envelope.pointer)
    (108891, 199990000)
    """
    return Mirror(bank, limits).wrap(
        fn,
        inline_bytes=inline_bytes,
        preview_chars=preview_chars,
        to_model_output=to_model_output,
    )


def _is_async(fn: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(fn, "__call__", None)  # noqa: B004 - an object whose calls are awaited
    )


def _parsed_arguments(text: str) -> dict[str, object]:
    given: object = {}
    try:
        if text.strip():
            given = loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidArgumentError(
            "the arguments are not a JSON object", "Pass the arguments by name, as one object."
        )
    return cast("dict[str, object]", given)


def _as_schema(found: object, node: object, root: Mapping[str, Any]) -> object:
    types = schema_types(node, root) - {"null"}
    if types == {"string"}:
        return as_text(found)
    return parsed(found) if types and "string" not in types else found
