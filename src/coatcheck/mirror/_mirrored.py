"""One mirrored callable: pointers in, envelopes out, and what it does is not changed."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from ..bank import PLAIN_TYPES, Bank, Stream, portal
from ..content import Encoding
from ..records import Limits
from ._noted import noted
from ._offloader import Offloader
from ._parameters import Parameters


class MirroredTool:
    """One callable, mirrored. Small results and plain arguments take the quick path.

    Args:
        fn: The callable; what it does is not changed.
        parameters: Its parameters.
        bank: Where pointers are looked up.
        offloader: Shows its results.
        limits: When a result is offloaded, unless `inline_bytes` says it.
        inline_bytes: From this encoded size on a result is offloaded; 0 always.
        preview_chars: Longest preview in its envelopes.
        to_model_output: Makes of a result what the model should see.
        owned: Nobody changes an array once it was returned.
    """

    def __init__(
        self,
        fn: Callable[..., object],
        parameters: Parameters,
        bank: Bank,
        offloader: Offloader,
        *,
        limits: Limits,
        inline_bytes: int | None,
        preview_chars: int | None,
        to_model_output: Callable[[Any], object] | None,
        owned: bool = False,
    ) -> None:
        for name, number in (("inline_bytes", inline_bytes), ("preview_chars", preview_chars)):
            if number is not None and number < 0:
                raise ValueError(f"{name} must be 0 or more, got {number}")
        self._fn = fn
        self._parameters = parameters
        self._bank = bank
        self._offloader = offloader
        self.name: str = getattr(fn, "__name__", None) or type(fn).__name__
        self._limit_bytes = limits.inline_limit(self.name) if inline_bytes is None else inline_bytes
        self._preview_chars = preview_chars
        self._to_model_output = to_model_output
        self._owned = owned
        # ASCII text below this is shown as it is, without a further look.
        self._quick_bytes = 0 if to_model_output is not None else self._limit_bytes

    def mirrored(self) -> Callable[..., Any]:
        """Return the mirrored form: async for an async callable or generator, else sync."""
        if inspect.isasyncgenfunction(self._fn):
            mirrored = self._waiting(awaited(self._fn))
        else:
            mirrored = self._waiting(self._fn) if is_async(self._fn) else self._blocking()
        if self._bank.journal is not None:
            mirrored = noted(mirrored, self._bank.journal, self._bank, self.name)
        return self._dressed(mirrored)

    def _waiting(self, function: Callable[..., object]) -> Callable[..., Any]:
        """Return the mirrored form of an async function."""
        parameters, bank, quick_bytes = self._parameters, self._bank, self._quick_bytes
        fn = cast("Callable[..., Awaitable[object]]", function)

        async def mirrored(*args: Any, **kwargs: Any) -> object:
            if not parameters.are_settled(args, kwargs):
                call = parameters.bound(args, kwargs)
                if call.has_pointers:
                    await call.fetch(bank)
                args, kwargs = call.arrived()
            result = await fn(*args, **kwargs)
            if type(result) is str and result.isascii() and len(result) < quick_bytes:
                return result
            if self._to_model_output is not None:
                result = await self._model_output(result)
            return await self._shown(result)

        return mirrored

    def _blocking(self) -> Callable[..., Any]:
        """Return the mirrored form of a sync function; it waits on the portal thread."""
        parameters, bank, quick_bytes = self._parameters, self._bank, self._quick_bytes
        fn = self._fn

        def mirrored(*args: Any, **kwargs: Any) -> object:
            if not parameters.are_settled(args, kwargs):
                call = parameters.bound(args, kwargs)
                if call.has_pointers:
                    portal().run(call.fetch(bank))
                args, kwargs = call.arrived()
            result = fn(*args, **kwargs)
            if type(result) is str and result.isascii() and len(result) < quick_bytes:
                return result
            if type(result) not in PLAIN_TYPES and inspect.isawaitable(result):
                return self.shown_later(result)
            if self._to_model_output is not None:
                # In the caller's thread: on the portal's, a sync tool called in it would wait
                # for itself.
                result = self._to_model_output(result)
                if inspect.isawaitable(result):
                    result = portal().run(_awaited(result))
            if _is_stream(result):
                shown = self._shown(result)
                return shown if hasattr(result, "__aiter__") else portal().run(shown)
            decided = self._decided(result)
            if not isinstance(decided, Encoding):
                return decided
            return portal().run(self._kept(result, decided))

        return mirrored

    def _decided(self, result: object) -> object:
        return self._offloader.decide(result, self.name, self._limit_bytes, owned=self._owned)

    async def _model_output(self, result: object) -> object:
        shrink = cast("Callable[[object], object]", self._to_model_output)
        shrunk = shrink(result)
        if inspect.isawaitable(shrunk):
            return await cast("Awaitable[object]", shrunk)
        return shrunk

    async def shown_later(self, result: Awaitable[object]) -> object:
        """Return what to show of a result that is still to come."""
        awaited = await result
        if self._to_model_output is not None:
            awaited = await self._model_output(awaited)
        return await self._shown(awaited)

    async def _shown(self, result: object) -> object:
        if _is_stream(result):
            return await self._offloader.offload(
                result, self.name, limit_bytes=self._limit_bytes, preview_chars=self._preview_chars
            )
        decided = self._decided(result)
        if not isinstance(decided, Encoding):
            return decided
        return await self._kept(result, decided)

    async def _kept(self, result: object, encoding: Encoding) -> object:
        return await self._offloader.keep(
            result,
            encoding,
            self.name,
            limit_bytes=self._limit_bytes,
            preview_chars=self._preview_chars,
        )

    def _dressed(self, mirrored: Callable[..., Any]) -> Callable[..., Any]:
        """Give `mirrored` the looks of the function.

        No ``__wrapped__``: it would make a framework see the types from before.
        """
        named: Any = mirrored
        named.__name__ = self.name
        named.__qualname__ = getattr(self._fn, "__qualname__", self.name)
        named.__doc__ = self._fn.__doc__
        named.__module__ = getattr(self._fn, "__module__", __name__)
        named.__signature__ = self._parameters.signature
        named.__annotations__ = self._parameters.annotations
        return mirrored


def awaited(fn: Callable[..., object]) -> Callable[..., object]:
    """Return an async generator function as one that is awaited for its generator."""

    async def made(*args: Any, **kwargs: Any) -> object:
        return fn(*args, **kwargs)

    return made


def _is_stream(result: object) -> bool:
    return type(result) not in PLAIN_TYPES and Stream.of(result, is_result=True) is not None


async def _awaited(result: Awaitable[object]) -> object:
    return await result


def is_async(fn: Callable[..., object]) -> bool:
    """Return whether a call of `fn` is to be awaited."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(fn, "__call__", None)  # noqa: B004 - an object whose calls are awaited
    )
