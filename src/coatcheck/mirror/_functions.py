"""One function mirrored, without a `Mirror` of one's own."""

from collections.abc import Callable
from typing import Any

from ..bank import Bank, BlockingBank
from ..records import Limits
from ._mirror import Mirror


def mirror(
    fn: Callable[..., object],
    bank: Bank | BlockingBank,
    *,
    inline_bytes: int | None = None,
    preview_chars: int | None = None,
    to_model_output: Callable[[Any], object] | None = None,
    owned: bool = False,
    limits: Limits | None = None,
) -> Callable[..., Any]:
    """Return a function like `fn` that takes pointers for arguments, and may return an envelope.

    For any framework: name, docstring and signature are those of `fn`, but for annotations
    that also let a pointer in. Sync stays sync. Arguments are validated once, as the declared
    types, after pointers are resolved; parameters of type `Bank` get the bank and are hidden;
    `Verbatim` ones get pointers as text. What `fn` raises passes through; an argument that is
    missing or that it does not know is a `TypeError`, as without us.

    Args:
        fn: A function, method or other callable, sync or async.
        bank: Where results are kept, and pointers are looked up.
        inline_bytes: From this encoded size on a result is offloaded; 0 always.
        preview_chars: Longest preview in its envelopes.
        to_model_output: Makes of a result what the model should see, before its size is
            checked; may be async. What it leaves out is not banked.
        owned: Nobody changes a numpy array once `fn` returned it, so that none is copied.
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
        owned=owned,
    )


def background(
    fn: Callable[..., object],
    bank: Bank,
    *,
    ttl_seconds: float = 600,
    lease_seconds: float = 60,
    inline_bytes: int | None = None,
    preview_chars: int | None = None,
    to_model_output: Callable[[Any], object] | None = None,
    limits: Limits | None = None,
    owned: bool = False,
) -> Callable[..., Any]:
    """Return a function like `fn` that starts it, and returns a handle at once.

    As `mirror`, but the work goes on in the background: of an async `fn` on the running event
    loop (asyncio), of a sync one in a thread. Pointers and arguments are checked before it
    starts. What comes of it, the envelope of a large result included, is kept in the bank, for
    the tool ``pollResult`` of `coatcheck.tools.poll_tools`, in any process that has the store.

    Args:
        fn: A function, method or other callable, sync or async.
        bank: Where handles and results are kept, and pointers are looked up.
        ttl_seconds: How long the outcome can be asked for, from when the work ended.
        lease_seconds: How long the work still seems to go on once its process has died.
        inline_bytes: From this encoded size on its result becomes a pointer; 0 always.
        preview_chars: Longest preview in its envelopes.
        to_model_output: Makes of a result what the model should see; may be async.
        limits: Where other limits than the bank's should hold.
        owned: Whether the arrays it returns are never changed afterwards: no copy is made.

    >>> import asyncio, json
    >>> from coatcheck.stores import MemoryStore
    >>> from coatcheck.tools import poll_tools
    >>> async def example() -> str:
    ...     bank = Bank(MemoryStore())
    ...
    ...     async def count(to: int) -> int:
    ...         return len(range(to))
    ...
    ...     started = json.loads(await background(count, bank)(1_000))
    ...     (poll,) = poll_tools(bank)
    ...     return await poll.call({"handle": started["handle"], "waitMs": 5_000})
    >>> asyncio.run(example())
    '{"status":"done","result":1000}'
    """
    return Mirror(bank, limits).background(
        fn,
        ttl_seconds=ttl_seconds,
        lease_seconds=lease_seconds,
        inline_bytes=inline_bytes,
        preview_chars=preview_chars,
        to_model_output=to_model_output,
        owned=owned,
    )
