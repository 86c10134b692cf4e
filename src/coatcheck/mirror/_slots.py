"""Where pointers stand among the arguments of a call, and what is put in their place."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Self, TypeAlias, TypeGuard

from ..bank import Bank
from ..content import encoded_size
from ..errors import InvalidArgumentError, UnencodableValueError
from ..records import Envelope, Pointer, dataclass, names_pointer

_REPEATED_BYTES = 32 * 1024 * 1024

_Trail: TypeAlias = "tuple[_Trail, object] | None"
"""The key of a place, behind the keys that lead there: shared, as an argument may be deep."""


@dataclass(slots=True)
class Slot:
    """One place that holds a pointer, or what was meant as one, in a copy of the argument."""

    container: Any
    key: Hashable
    trail: "_Trail"
    pointer: str
    found: object = None
    """What stands behind the pointer, or what its selector picks of that, once fetched."""
    content_type: str | None = None
    """Of the artifact; None of what a selector picks."""

    @property
    def path(self) -> tuple[object, ...]:
        """The keys that lead to the place, from the outside in."""
        keys: list[object] = []
        trail = self.trail
        while trail is not None:
            trail, key = trail
            keys.append(key)
        return tuple(reversed(keys))


class Argument:
    """One argument; where it holds pointers, a copy of it in which they are replaced.

    Only a whole string that names a pointer counts, nested in lists and dicts to any depth, and
    the envelope that code was given; a string with ``#`` and no selector behind it too, so that
    it is refused and not passed on as text.
    The caller's own objects are never changed. Walked with a stack, as a model may nest
    deeper than Python recurses, and each object once, as a host's may contain itself.
    """

    def __init__(self, value: object) -> None:
        self._root: list[object] = [value]
        self.slots: list[Slot] = []
        if names(value):
            self.slots.append(Slot(self._root, 0, None, _text_of(value)))
        elif holds_pointer(value):
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
        waiting: list[tuple[Any, Hashable, _Trail]] = [(self._root, 0, None)]
        while waiting:
            container, key, trail = waiting.pop()
            value = container[key]
            if _is_container(value):
                if id(value) not in copies:
                    copies[id(value)] = copy = value.copy()
                    waiting.extend((copy, inner, (trail, inner)) for inner in _keys(copy))
                container[key] = copies[id(value)]
            elif names(value):
                self.slots.append(Slot(container, key, trail, _text_of(value)))

    async def fetch(self, bank: Bank, *, leaves_unknown: bool = False) -> None:
        """Put what each pointer stands for in its place.

        Args:
            bank: Where it is looked up.
            leaves_unknown: Whether a pointer that stands for nothing there is left as it is.

        Raises:
            CoatcheckError: As `fetch_all`.
        """
        if leaves_unknown:
            self.slots = [each for each in self.slots if await _is_found(bank, each.pointer)]
        await fetch_all(bank, [self])

    def fill(self, reading: Callable[[Slot], object]) -> object:
        """Put `reading` of each slot in its place, and return the argument."""
        for slot in self.slots:
            slot.container[slot.key] = reading(slot)
        return self.value

    def fillings(self, *readings: Callable[[Slot], object]) -> Iterator[object]:
        """Yield the argument once for each way to read what was found."""
        return map(self.fill, readings)


async def fetch_all(bank: Bank, arguments: Sequence[Argument]) -> None:
    """Put what each pointer of one call stands for in its place.

    Each place gets an object of its own, so that a tool may change one. A text with a
    prefix that nobody registered is no pointer unless something stands behind it.

    Raises:
        InvalidPointerError: What follows the ``#`` of a pointer is no selector.
        UnknownPointerError, ExpiredPointerError: Nothing stands behind a pointer.
        NothingSelectedError, InvalidQueryError, DeadlineError: As `Bank.get`.
        InvalidArgumentError: Pointers are repeated beyond 32 MiB.
        StoreError: The store failed.
    """
    for argument in arguments:
        kept = [slot for slot in argument.slots if await _is_ours(bank, slot.pointer)]
        argument.slots = kept
    slots = [slot for argument in arguments for slot in argument.slots]
    repeats = await _Repeats.of(bank, slots)
    async with aclosing(bank.get_each([slot.pointer for slot in slots])) as each:
        for slot in slots:
            slot.found, slot.content_type = await anext(each)
            repeats.add(slot)
    for argument in arguments:
        argument.fill(lambda slot: slot.found)


def holds_pointer(value: object) -> bool:
    """Return whether lists and dicts hold a pointer, or what was meant as one, at any depth."""
    waiting, seen = [value], set[int]()
    while waiting:
        container = waiting.pop()
        if not _is_container(container) or id(container) in seen:
            continue
        seen.add(id(container))
        for inner in container.values() if isinstance(container, dict) else container:
            if _is_container(inner):
                waiting.append(inner)
            elif names(inner):
                return True
    return False


def names(value: object) -> bool:
    """Return whether a value is meant as a pointer: its text, or an envelope that code holds."""
    return isinstance(value, Envelope) or names_pointer(value)


def _text_of(value: object) -> str:
    return value.pointer if isinstance(value, Envelope) else str(value)


async def _is_ours(bank: Bank, pointer: str) -> bool:
    return await bank.knows_prefix(_whole(pointer).prefix) or await _is_found(bank, pointer)


async def _is_found(bank: Bank, pointer: str) -> bool:
    return await bank.find(_whole(pointer)) is not None


class _Repeats:
    """Refuses a short call that would take much memory: one payload, in many places.

    Args:
        size_bytes: Of those artifacts that are given more than once, by id.
        left_bytes: How much more the places with selectors may take in all, by id.
    """

    def __init__(self, size_bytes: dict[str, int], left_bytes: dict[str, int]) -> None:
        self._size_bytes = size_bytes
        self._left_bytes = left_bytes

    @classmethod
    async def of(cls, bank: Bank, slots: Sequence[Slot]) -> Self:
        """Check what is known before anything is fetched: how large whole payloads are.

        Raises:
            InvalidArgumentError: They are repeated beyond 32 MiB.
        """
        places = Counter(_whole(slot.pointer).id for slot in slots)
        wholes = Counter(_whole(slot.pointer).id for slot in slots if not _is_part(slot))
        size_bytes: dict[str, int] = {}
        for slot in slots:
            id_ = _whole(slot.pointer).id
            if places[id_] > 1 and id_ not in size_bytes:
                artifact = await bank.find(slot.pointer)
                size_bytes[id_] = 0 if artifact is None else artifact.size_bytes
        _check_repeated(sum(size * max(0, wholes[id_] - 1) for id_, size in size_bytes.items()))
        left_bytes = {
            id_: _REPEATED_BYTES + (0 if wholes[id_] else size) for id_, size in size_bytes.items()
        }
        return cls(size_bytes, left_bytes)

    def add(self, slot: Slot) -> None:
        """Count what one place was given.

        Raises:
            InvalidArgumentError: Parts of one artifact take 32 MiB more than it does.
        """
        id_ = _whole(slot.pointer).id
        if id_ not in self._left_bytes or not _is_part(slot):
            return
        try:
            part_bytes = encoded_size(slot.found)
        except UnencodableValueError:  # cells of a frame may hold what JSON has no rule for
            part_bytes = self._size_bytes[id_]
        self._left_bytes[id_] -= part_bytes
        _check_repeated(_REPEATED_BYTES - min(0, self._left_bytes[id_]))


def _check_repeated(repeated_bytes: int) -> None:
    if repeated_bytes > _REPEATED_BYTES:
        raise InvalidArgumentError(
            f"the same pointers given again add {repeated_bytes:,} bytes to this call; repeats"
            f" may add {_REPEATED_BYTES:,}",
            "Give each large pointer once in a call.",
        )


def _is_part(slot: Slot) -> bool:
    return "#" in slot.pointer


def _whole(text: str) -> Pointer:
    return Pointer.parse(text.partition("#")[0])


def _is_container(value: object) -> TypeGuard[list[Any] | dict[Any, Any]]:
    return isinstance(value, list | dict)


def _keys(container: list[Any] | dict[Any, Any]) -> Iterable[Any]:
    return range(len(container)) if isinstance(container, list) else list(container)
