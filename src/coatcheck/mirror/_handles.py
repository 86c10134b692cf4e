"""Tools whose work goes on in the background: a call returns a handle at once."""

import inspect
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial, update_wrapper
from typing import Any, cast

from ..bank import Bank, in_daemon_thread, portal
from ..content import dumps, plain_rows
from ..errors import UnencodableValueError
from ..records import Envelope, Limits
from ._mirrored import MirroredTool, awaited, is_async
from ._offloader import Offloader
from ._parameters import Parameters

_DOC = "[Async] Returns a handle at once; pollResult gets the result."


class BackgroundTool:
    """One callable whose mirrored form starts it, and returns a handle.

    Args:
        fn: The callable; what it does is not changed.
        parameters: Its parameters. They are resolved and checked before anything is started.
        bank: Where handles and large results are kept.
        offloader: Shows its results.
        limits: When a result is offloaded, unless `inline_bytes` says it.
        ttl_seconds: How long a result is kept, from when the work ended.
        lease_seconds: How long work still seems to go on once its process has died.
        inline_bytes: From this encoded size on a result is offloaded; 0 always.
        preview_chars: Longest preview in its envelopes.
        to_model_output: Makes of a result what the model should see.
        owned: Whether the arrays it returns are never changed afterwards: no copy is made.
    """

    def __init__(
        self,
        fn: Callable[..., object],
        parameters: Parameters,
        bank: Bank,
        offloader: Offloader,
        *,
        limits: Limits,
        ttl_seconds: float,
        lease_seconds: float,
        inline_bytes: int | None,
        preview_chars: int | None,
        to_model_output: Callable[[Any], object] | None,
        owned: bool,
    ) -> None:
        self._fn = fn
        self._bank = bank
        self._ttl_seconds = ttl_seconds
        self._lease_seconds = lease_seconds
        mirrored = partial(MirroredTool, parameters=parameters, bank=bank, offloader=offloader)
        self._tool = mirrored(
            fn,
            limits=limits,
            inline_bytes=inline_bytes,
            preview_chars=preview_chars,
            to_model_output=to_model_output,
            owned=owned,
        )
        # Its own limits are for what the work returns; a handle is shown as it is.
        self._starting = mirrored(
            self._starter(),
            limits=Limits(),
            inline_bytes=None,
            preview_chars=None,
            to_model_output=None,
        )

    def mirrored(self) -> Callable[..., Any]:
        """Return the mirrored form: async for an async callable, else sync."""
        return self._starting.mirrored()

    def _starter(self) -> Callable[..., object]:
        """Return a function like the callable that starts it, and returns a handle."""
        fn = awaited(self._fn) if inspect.isasyncgenfunction(self._fn) else self._fn

        async def start(*args: Any, **kwargs: Any) -> str:
            waiting = cast("Callable[..., Awaitable[object]]", fn)
            return await self._started(lambda: waiting(*args, **kwargs))

        def start_blocking(*args: Any, **kwargs: Any) -> str:
            call = partial(copy_context().run, fn, *args, **kwargs)
            return portal().run(self._started(lambda: _in_thread(call)))

        starter: Any = start if is_async(fn) else start_blocking
        update_wrapper(starter, self._fn)
        starter.__name__ = self._tool.name
        said = self._fn.__doc__
        starter.__doc__ = f"{inspect.cleandoc(said)}\n\n{_DOC}" if said else _DOC
        return cast("Callable[..., object]", starter)

    async def _started(self, call: Callable[[], Awaitable[object]]) -> str:
        async def work() -> object:
            return _as_json(await self._tool.shown_later(call()))

        handle = await self._bank.handles.start(
            work, ttl_seconds=self._ttl_seconds, lease_seconds=self._lease_seconds
        )
        note = "pollResult gets the result"
        return dumps({"handle": handle, "status": "pending", "note": note}).decode()


async def _in_thread(call: Callable[[], object]) -> object:
    result = await in_daemon_thread(call)
    return await cast("Awaitable[object]", result) if inspect.isawaitable(result) else result


def _as_json(shown: object) -> object:
    """Return what a model is shown as JSON values; text where it has none."""
    if isinstance(shown, Envelope):
        return shown.to_wire()
    shown = plain_rows(shown)
    try:
        dumps(shown)
    except UnencodableValueError:
        # Short, or the offloader would have cut it, and its repr is known to work.
        return repr(shown)
    return shown
