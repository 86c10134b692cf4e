"""What the interpreter asks of the system, seen and refused through its audit hook."""

import operator
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

Watch = Callable[[str, tuple[object, ...]], None]

FILE_EVENTS = frozenset(
    {"open", "os.mkdir", "os.chmod", "os.rename", "os.link", "os.remove", "os.scandir"}
)
_watches: list[Watch] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event in FILE_EVENTS:
        for watch in tuple(_watches):
            watch(event, arguments)


# A hook stays for the life of the process, so there is one, and it is idle between tests. Then it
# runs no Python at all: on 3.11 a thread that starts under coverage dies unseen where another one
# starts within the hook, and whoever waits for it waits for ever.
_switch: Any = partial(operator.is_)
sys.addaudithook(_switch)


def _call(hook: Callable[[str, tuple[object, ...]], object]) -> None:
    _switch.__setstate__((hook, (), {}, None))


@pytest.fixture
def watch() -> Iterator[Callable[[Watch], None]]:
    """Call a function before each file operation; an exception out of it refuses that one."""
    _call(_hook)
    yield _watches.append
    _call(operator.is_)
    _watches.clear()


@pytest.fixture
def opened(watch: Callable[[Watch], None]) -> list[str]:
    """Return the file operations since the start of the test."""
    seen: list[str] = []
    watch(lambda event, arguments: seen.append(f"{event} {arguments!r}"))
    return seen
