"""A store that writes down what it is asked for."""

import functools
import inspect
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from coatcheck import stores
from coatcheck.stores import FileStore, MemoryStore, ObjectStore, RedisStore, Store
from coatcheck.testing import ManualClock

Asked = tuple[str, tuple[str, ...]]
"""One call of a store: its method, and the keys it named."""


@dataclass(slots=True)
class Recorded:
    """A store, and every call of it since `calls` was emptied."""

    store: Store
    calls: list[Asked] = field(default_factory=list[Asked])

    @property
    def keys(self) -> set[str]:
        """All keys that were named."""
        return {key for _, keys in self.calls for key in keys}


def _methods() -> set[str]:
    """Return what a store can be asked for, by any of its Protocols."""
    protocols = [each for name, each in vars(stores).items() if name.startswith("Support")]
    return {
        name
        for protocol in (Store, *protocols)
        for name, member in vars(protocol).items()
        if not name.startswith("_") and inspect.isfunction(member) and name != "close"
    }


def _keys_in(arguments: Iterable[object]) -> tuple[str, ...]:
    keys: list[str] = []
    for argument in arguments:
        if isinstance(argument, str):
            keys.append(argument)
        elif isinstance(argument, dict | list | tuple | set):
            several = cast("Iterable[object]", argument)
            keys.extend(each for each in several if isinstance(each, str))
    return tuple(keys)


def recorded(kind: type[Store], *arguments: Any) -> Recorded:
    """Return a store of this kind that writes down its calls, whatever it is capable of."""
    calls: list[Asked] = []

    def noting(name: str, method: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(method)
        def note(self: object, *args: object, **kwargs: object) -> object:
            calls.append((name, _keys_in((*args, *kwargs.values()))))
            return method(self, *args, **kwargs)

        return note

    members = {
        name: noting(name, getattr(kind, name)) for name in _methods() if hasattr(kind, name)
    }
    watched = type(f"Recorded{kind.__name__}", (kind,), members)
    return Recorded(watched(*arguments), calls)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000)


@pytest.fixture(params=["memory", "file", "redis"])
async def record(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Recorded]:
    """Returns an empty store of each kind, that writes down its calls."""
    if request.param == "redis":
        record = recorded(RedisStore, request.getfixturevalue("redis_url"))
    elif request.param == "s3":
        address = request.getfixturevalue("s3").address(secrets.token_hex(6))
        record = recorded(ObjectStore, address)
    elif request.param == "file":
        record = recorded(FileStore, tmp_path / "store")
    else:
        record = recorded(MemoryStore)
    yield record
    await record.store.close()
