"""A store driven by random steps, beside a dict that says what it must hold."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ..stores import (
    Store,
    SupportsBatch,
    SupportsCompare,
    SupportsCreate,
    SupportsGather,
    SupportsPurge,
    SupportsRange,
    SupportsStream,
)

_Result = TypeVar("_Result")

_KEYS = ("k", "a/1", "a/10", "a/b/1", "a/b/c/2", "a/bc/1", "a/B", "s/%2f~x/records/0-_.txt")
_FOLDERS = ("a/", "a/b/", "a/b/c/", "a/bc/", "s/%2f~x/records/", "s/", "none/")

_keys = st.sampled_from(_KEYS)
_payloads = st.binary(max_size=40) | st.integers(0, 255).map(lambda byte: bytes([byte]) * 70_000)
_places = st.integers(min_value=0, max_value=80_000)


class _StopError(Exception):
    """What a stream raises that ends early."""


class StoreMachine(RuleBasedStateMachine):
    """Drives one store; after each step it must hold exactly what a dict holds.

    Get one with `store_machine`. Steps that need a capability the store lacks are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store: Any = self.make_store()
        self.expected: dict[str, bytes] = {}

    @staticmethod
    def make_store() -> Store:
        """Return a fresh, empty store."""
        raise NotImplementedError("get a machine for a store from store_machine")

    def teardown(self) -> None:
        """Close the store and its event loop."""
        self.run(self.store.close())
        self.runner.close()

    def run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what `coroutine` returns on the loop of this machine."""
        return self.runner.run(coroutine)

    @rule(key=_keys, payload=_payloads)
    def put(self, key: str, payload: bytes) -> None:
        """Put a key, new or not."""
        self.run(self.store.put(key, payload))
        self.expected[key] = payload

    @rule(key=_keys)
    def delete(self, key: str) -> None:
        """Delete a key, stored or not."""
        self.run(self.store.delete(key))
        self.expected.pop(key, None)

    @precondition(lambda self: isinstance(self.store, SupportsCompare))
    @rule(keys=st.sets(_keys, max_size=3), payload=_payloads, is_known=st.booleans())
    def delete_unchanged(self, keys: set[str], payload: bytes, is_known: bool) -> None:  # noqa: FBT001
        """Delete keys that are as they were put, or those that happen to hold a payload."""
        given = {key: self.expected.get(key, payload) if is_known else payload for key in keys}
        others = {key for key in keys if self.expected.get(key, given[key]) != given[key]}
        assert self.run(self.store.delete_unchanged(given)) == others
        for key in keys - others:
            self.expected.pop(key, None)

    @precondition(lambda self: isinstance(self.store, SupportsCreate))
    @rule(key=_keys, payload=_payloads)
    def create(self, key: str, payload: bytes) -> None:
        """Create a key, which only works where none is."""
        assert self.run(self.store.create(key, payload)) == (key not in self.expected)
        self.expected.setdefault(key, payload)

    @precondition(lambda self: isinstance(self.store, SupportsBatch))
    @rule(payloads=st.dictionaries(_keys, _payloads, max_size=3), unless=st.none() | _keys)
    def put_many(self, payloads: dict[str, bytes], unless: str | None) -> None:
        """Put several keys, where one of any is free."""
        is_free = unless is None or unless not in self.expected
        assert self.run(self.store.put_many(payloads, unless=unless)) == is_free
        if is_free:
            self.expected.update(payloads)

    @precondition(lambda self: isinstance(self.store, SupportsStream))
    @rule(key=_keys, chunks=st.lists(_payloads, max_size=4))
    def put_stream(self, key: str, chunks: list[bytes]) -> None:
        """Put a key piece by piece."""
        self.run(self.store.put_stream(key, iter(chunks)))
        self.expected[key] = b"".join(chunks)

    @precondition(lambda self: isinstance(self.store, SupportsStream))
    @rule(key=_keys, chunks=st.lists(_payloads, max_size=4))
    def break_stream(self, key: str, chunks: list[bytes]) -> None:
        """Begin a stream that fails, which changes nothing."""

        def broken() -> Iterator[bytes]:
            yield from chunks
            raise _StopError

        with pytest.raises(_StopError):
            self.run(self.store.put_stream(key, broken()))

    @precondition(lambda self: isinstance(self.store, SupportsRange))
    @rule(key=_keys, start=_places, length=_places)
    def get_range(self, key: str, start: int, length: int) -> None:
        """Read a window, of a stored key or not."""
        payload = self.expected.get(key)
        window = None if payload is None else payload[start : start + length]
        assert self.run(self.store.get_range(key, start, start + length)) == window

    @precondition(lambda self: isinstance(self.store, SupportsGather))
    @rule(keys=st.lists(_keys, max_size=6))
    def get_many(self, keys: list[str]) -> None:
        """Read several keys, stored or not, the same one more than once."""
        assert self.run(self.store.get_many(keys)) == [self.expected.get(key) for key in keys]

    @precondition(lambda self: isinstance(self.store, SupportsPurge))
    @rule(keys=st.lists(_keys, max_size=6))
    def delete_many(self, keys: list[str]) -> None:
        """Remove several keys, stored or not, the same one more than once."""
        self.run(self.store.delete_many(keys))
        for key in keys:
            self.expected.pop(key, None)

    @invariant()
    def holds_what_is_expected(self) -> None:
        """Compare every key and every listing."""
        assert self.run(self._held()) == (self.expected, _listings(self.expected))

    async def _held(self) -> tuple[dict[str, bytes], dict[str, list[str]]]:
        held: dict[str, bytes | None] = {key: await self.store.get(key) for key in _KEYS}
        listings = {folder: [key async for key in self.store.keys(folder)] for folder in _FOLDERS}
        return {key: payload for key, payload in held.items() if payload is not None}, listings


def store_machine(make_store: Callable[[], Store]) -> type[StoreMachine]:
    """Return a state machine that drives what `make_store` makes: a fresh, empty store each time.

    For settings of your own; `check_store` runs it. Or use its ``TestCase``.
    """
    return type("StoreMachine", (StoreMachine,), {"make_store": staticmethod(make_store)})


def check_store(make_store: Callable[[], Store], *, runs: int = 10, steps: int = 12) -> None:
    """Drive stores by random steps, and fail where one does not behave as a dict does.

    Args:
        make_store: Makes a fresh, empty store each time.
        runs: How many stores are driven.
        steps: The most that each has to take.

    >>> from coatcheck.stores import MemoryStore
    >>> check_store(MemoryStore, runs=2, steps=3)
    """
    chosen = settings(max_examples=runs, stateful_step_count=steps)
    run_state_machine_as_test(store_machine(make_store), settings=chosen)


def _listings(payloads: dict[str, bytes]) -> dict[str, list[str]]:
    return {
        folder: sorted(key for key in payloads if key.rpartition("/")[0] + "/" == folder)
        for folder in _FOLDERS
    }
