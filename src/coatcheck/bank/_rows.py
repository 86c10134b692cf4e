"""Payloads that are read in the ranges that their readers ask for, one after another."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from ..content import MissingRangeError, PartialPayload, is_array, read_only

T = TypeVar("T")

Fetch: TypeAlias = Callable[[int, int], Awaitable[bytes | None]]
"""Returns bytes ``[start, stop)`` of one payload, None where it is gone."""


class GoneError(Exception):
    """A payload is gone, as after a delete elsewhere. Stays within the bank."""


async def asked_of(size_bytes: int, fetch: Fetch, ask: Callable[[PartialPayload], T]) -> T:
    """Return what `ask` makes of a payload, once it was given every range that it misses.

    Raises:
        GoneError: The payload is gone.
    """
    payload = PartialPayload(size_bytes)
    while True:
        try:
            return ask(payload)
        except MissingRangeError as gap:
            start_byte, stop_byte = gap.start_byte, gap.stop_byte
        piece = await fetch(start_byte, stop_byte)
        if piece is None:
            raise GoneError
        payload.add(start_byte, piece)


def handed_on(value: object) -> object:
    """Return a kept value as one reader gets it: of an array its own view, of the same memory."""
    return read_only(value) if is_array(value) else value
