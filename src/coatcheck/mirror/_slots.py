"""Where pointers stand among the arguments of a call, and what is put in their place."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

from ..bank import Bank
from ..records import Pointer, is_pointer


@dataclass(slots=True)
class Slot:
    """One place that holds a pointer, in a copy of the argument."""

    container: Any
    key: Hashable
    path: tuple[object, ...]
    pointer: str
    found: object = None
    """What stands behind the pointer, as it was put, once fetched."""


class Argument:
    """One argument; where it holds pointers, a copy of it in which they are replaced.

    Only a whole string that is a pointer counts, nested in lists and dicts to any depth.
    The caller's own objects are never changed. Walked with a stack, as a model may nest
    deeper than Python recurses, and each object once, as a host's may contain itself.
    """

    def __init__(self, value: object) -> None:
        self._root: list[object] = [value]
        self.slots: list[Slot] = []
        if is_pointer(value):
            self.slots.append(Slot(self._root, 0, (), str(value)))
        elif _holds_pointer(value):
            self._copy()

    @property
    def value(self) -> object:
        """The argument as it stands now."""
        return self._root[0]

    @property
    def is_whole(self) -> bool:
        """Whether the argument itself is one pointer."""
        return len(self.slots) == 1 and self.slots[0].container is self._root

    def _copy(self) -> None:
        copies: dict[int, Any] = {}
        waiting: list[tuple[Any, Hashable, tuple[object, ...]]] = [(self._root, 0, ())]
        while waiting:
            container, key, path = waiting.pop()
            value = container[key]
            if _is_container(value):
                if id(value) not in copies:
                    copies[id(value)] = copy = value.copy()
                    waiting.extend((copy, inner, (*path, inner)) for inner in _keys(copy))
                container[key] = copies[id(value)]
            elif is_pointer(value):
                self.slots.append(Slot(container, key, path, str(value)))

    async def fetch(self, bank: Bank) -> None:
        """Put what each pointer stands for in its place.

        Each place gets an object of its own, so that a tool may change one. A text with a
        prefix that nobody registered is no pointer unless something stands behind it.

        Raises:
            UnknownPointerError, ExpiredPointerError: Nothing stands behind a pointer.
            StoreError: The store failed.
        """
        kept: list[Slot] = []
        for slot in self.slots:
            prefix = Pointer.parse(slot.pointer).prefix
            if not await bank.knows_prefix(prefix) and await bank.find(slot.pointer) is None:
                continue
            slot.found = await bank.get(slot.pointer)
            kept.append(slot)
        self.slots = kept
        self.fill(lambda slot: slot.found)

    def fill(self, reading: Callable[[Slot], object]) -> object:
        """Put `reading` of each slot in its place, and return the argument."""
        for slot in self.slots:
            slot.container[slot.key] = reading(slot)
        return self.value

    def fillings(self, *readings: Callable[[object], object]) -> Iterator[object]:
        """Yield the argument once for each way to read what was found."""
        for reading in readings:
            for slot in self.slots:
                slot.container[slot.key] = reading(slot.found)
            yield self.value


def _holds_pointer(value: object) -> bool:
    waiting, seen = [value], set[int]()
    while waiting:
        container = waiting.pop()
        if not _is_container(container) or id(container) in seen:
            continue
        seen.add(id(container))
        for inner in container.values() if isinstance(container, dict) else container:
            if _is_container(inner):
                waiting.append(inner)
            elif is_pointer(inner):
                return True
    return False


def _is_container(value: object) -> TypeGuard[list[Any] | dict[Any, Any]]:
    return isinstance(value, list | dict)


def _keys(container: list[Any] | dict[Any, Any]) -> Iterable[Any]:
    return range(len(container)) if isinstance(container, list) else list(container)
