"""A bank for code without an event loop."""

from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from os import PathLike
from types import TracebackType
from typing import Self, TypeVar, overload

from ..errors import shown
from ..records import Answer, Artifact, Kind, Limits, Matches, Page, Pointer
from ..stores import Store
from ._bank import Bank
from ._lifetimes import Usage
from ._open import open_bank
from ._run import Run
from ._threads import portal

T = TypeVar("T")


class BlockingBank:
    """What a host without an event loop needs of `Bank`; works inside a running loop too.

    Opens its own bank, on one thread that all code without a loop shares.

    Args:
        address: As for `open_bank`, and so is all else.
        scope: Whose data it is.
        limits: How much is shown, and when.
        kinds: Kinds with a pointer prefix of their own.
        secret: 32 bytes for the ids of keyed puts.
        durable: Whether each write to files is flushed to the disk before it counts.

    >>> with BlockingBank("memory:") as bank:
    ...     artifact = bank.put("alpha beta", name="greek")
    ...     bank.read("greek", offset=6).content
    'beta'
    """

    def __init__(
        self,
        address: str | PathLike[str],
        *,
        scope: str = "default",
        limits: Limits | None = None,
        kinds: Iterable[Kind] = (),
        secret: bytes | None = None,
        durable: bool = False,
    ) -> None:
        self._opened_on = portal()
        self._stack = AsyncExitStack()
        opening = open_bank(
            address, scope=scope, limits=limits, kinds=kinds, secret=secret, durable=durable
        )
        self.bank: Bank = self._opened_on.run(self._stack.enter_async_context(opening))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store that was opened here. A second call does nothing, nor one in a fork."""
        if portal() is self._opened_on:  # else it is the parent's to close
            self._opened_on.run(self._stack.aclose())

    def scoped(self, scope: str, *, inherit: bool = False) -> "BlockingBank":
        """Return a bank for another scope on the same store, which stays this one's to close.

        See `Bank.scoped`.
        """
        other = BlockingBank.__new__(BlockingBank)
        other._opened_on = self._opened_on  # noqa: SLF001 - same class
        other._stack = AsyncExitStack()  # noqa: SLF001 - same class
        other.bank = self.bank.scoped(scope, inherit=inherit)
        return other

    def put(
        self,
        value: object,
        *,
        name: str | None = None,
        label: str | None = None,
        kind: str = "other",
        content_type: str | None = None,
        preview_chars: int | None = None,
        key: str | None = None,
        ttl_seconds: float | None = None,
        source: Mapping[str, object] | None = None,
        owned: bool = False,
    ) -> Artifact:
        """Store a value whole; see `Bank.put`."""
        return portal().run(
            self.bank.put(
                value,
                name=name,
                label=label,
                kind=kind,
                content_type=content_type,
                preview_chars=preview_chars,
                key=key,
                ttl_seconds=ttl_seconds,
                source=source,
                owned=owned,
            )
        )

    def find(self, pointer_or_name: str | Pointer) -> Artifact | None:
        """Return an artifact's facts or None; see `Bank.find`."""
        return portal().run(self.bank.find(pointer_or_name))

    @overload
    def get(self, pointer_or_name: str | Pointer, as_type: type[T]) -> T: ...
    @overload
    def get(self, pointer_or_name: str | Pointer, as_type: object = None) -> object: ...
    def get(self, pointer_or_name: str | Pointer, as_type: object = None) -> object:
        """Return the value as it was put, or as a declared type; see `Bank.get`."""
        return portal().run(self.bank.get(pointer_or_name, as_type))

    def payload(self, pointer_or_name: str | Pointer) -> bytes:
        """Return the exact bytes; see `Bank.payload`."""
        return portal().run(self.bank.payload(pointer_or_name))

    def read(
        self,
        pointer_or_name: str | Pointer,
        offset: int = 0,
        limit: int | None = None,
        unit: str = "chars",
    ) -> Page:
        """Return one window; see `Bank.read`."""
        return portal().run(self.bank.read(pointer_or_name, offset, limit, unit))

    def search(
        self,
        pointer_or_name: str | Pointer,
        needle: str,
        offset: int = 0,
        limit: int = 50,
        *,
        regex: bool = False,
        ignore_case: bool = True,
    ) -> Matches:
        """Return where a text or pattern stands; see `Bank.search`."""
        return portal().run(
            self.bank.search(
                pointer_or_name, needle, offset, limit, regex=regex, ignore_case=ignore_case
            )
        )

    def query(
        self,
        pointer_or_mapping: str | Pointer | Mapping[str, str | Pointer],
        expression: str,
        save_as: str | None = None,
    ) -> Answer:
        """Answer a question in SQL, JSONPath or JMESPath; see `Bank.query`."""
        return portal().run(self.bank.query(pointer_or_mapping, expression, save_as))

    def list(self, kind: str | None = None, *, granted: bool = False) -> Iterator[Artifact]:
        """Yield the scope's artifacts, newest first; see `Bank.list`."""
        artifacts = self.bank.list(kind, granted=granted)
        while (artifact := portal().run(_next(artifacts))) is not None:
            yield artifact

    def delete(self, pointer_or_name: str | Pointer) -> bool:
        """Remove an artifact; see `Bank.delete`."""
        return portal().run(self.bank.delete(pointer_or_name))

    def grant(self, pointer: str | Pointer, to_scope: str) -> None:
        """Let another scope read an artifact; see `Bank.grant`."""
        portal().run(self.bank.grant(pointer, to_scope))

    def revoke(self, pointer: str | Pointer, from_scope: str) -> bool:
        """Take a grant back; see `Bank.revoke`."""
        return portal().run(self.bank.revoke(pointer, from_scope))

    def use_store(self, store: Store) -> None:
        """Put into another store from now on, and read from there; see `Bank.use_store`."""
        portal().run(self.bank.use_store(store))

    def cleanup(self, older_than_seconds: float = 3_600) -> int:
        """Delete what this object put; see `Bank.cleanup`."""
        return portal().run(self.bank.cleanup(older_than_seconds))

    def usage(self) -> Usage:
        """Return what this scope takes; see `Bank.usage`."""
        return portal().run(self.bank.usage())

    @contextmanager
    def run(self, name: str) -> Generator[Run]:
        """Keep what a run is shown for as long as it goes on, a `with`; see `Bank.run`."""
        run = self.bank.run(name)
        portal().run(run.begin())
        try:
            with run.current():
                yield run
        finally:
            portal().run(run.end())


async def _next(artifacts: AsyncIterator[Artifact]) -> Artifact | None:
    return await anext(artifacts, None)


def bank_of(bank: Bank | BlockingBank) -> Bank:
    """Return a bank, or the one that a blocking bank stands before.

    Raises:
        TypeError: It is none.
    """
    found = bank.bank if isinstance(bank, BlockingBank) else bank
    if not isinstance(found, Bank):
        raise TypeError(
            f"a Bank or a BlockingBank is needed, got {shown(bank)}:"
            " `async with open_bank(…) as bank` gives one"
        )
    return found
