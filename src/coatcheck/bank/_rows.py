"""Rows of arrays and frames, read in the ranges that their readers ask for."""

from collections.abc import Awaitable, Callable

from ..content import MissingRangeError, PartialPayload, binary_page, is_array, read_only
from ..errors import DamagedPayloadError, InvalidArgumentError
from ..records import Limits, Page
from ._record import Record


async def read_rows(
    record: Record,
    fetch: Callable[[int, int], Awaitable[bytes | None]],
    offset: int,
    limit: int | None,
    limits: Limits,
) -> Page | None:
    """Return a page of an array or a frame, None where its payload is gone.

    Raises:
        InvalidArgumentError: As `binary_page`.
        DamagedPayloadError: It is not what was stored.
    """
    rows, payload = record.index.rows, PartialPayload(record.index.size_bytes)
    while rows is not None:
        try:
            return binary_page(rows, payload, offset=offset, limit=limit, limits=limits)
        except MissingRangeError as gap:
            start_byte, stop_byte = gap.start_byte, gap.stop_byte
        except InvalidArgumentError:
            raise
        except ValueError:
            raise DamagedPayloadError(record.artifact.pointer) from None
        data = await fetch(start_byte, stop_byte)
        if data is None:
            break
        payload.add(start_byte, data)
    return None


def handed_on(value: object) -> object:
    """Return a kept value as one reader gets it: of an array its own view, of the same memory."""
    return read_only(value) if is_array(value) else value
