"""numpy arrays: how large they are, to and from `.npy`, their rows, and plain JSON values of them.

numpy is imported only once there is an array, or a payload of one.
"""

import ast
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeAlias, cast

from ..errors import InvalidArgumentError, UnencodableValueError
from ..records import dataclass
from ._partial import PartialPayload

Foreign: TypeAlias = Any
"""What belongs to a library that need not be there."""

NPY_TYPE = "application/x-npy"
ARRAY_ROWS = "npy"
"""Format of the rows of an array, in its index."""

_MAGIC = b"\x93NUMPY"
_ALIGNED_BYTES = 64
_PIECE_BYTES = 262_144
_SHORT_HEADER = 65_535
_LONGEST_HEADER = 4 * 1024 * 1024
_CODECS = {1: "latin-1", 2: "latin-1", 3: "utf-8"}

# Most characters of one item as JSON, its comma included, by kind and size in bytes.
_WIDTHS: Mapping[tuple[str, int], int] = {
    ("b", 1): 6,
    ("i", 1): 5,
    ("i", 2): 7,
    ("i", 4): 12,
    ("i", 8): 21,
    ("u", 1): 4,
    ("u", 2): 6,
    ("u", 4): 11,
    ("u", 8): 21,
    ("f", 2): 25,
    ("f", 4): 25,
    ("f", 8): 25,
}
_WIDEST_NUMBER = 51
_ESCAPED = 6  # \u0000
_UCS4_BYTES = 4


def is_array(value: object) -> bool:
    """Return whether `value` is a numpy array, of whatever class; imports nothing."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def numpy_of_payload() -> Foreign:
    """Return numpy.

    Raises:
        InvalidArgumentError: It is not installed.
    """
    return library("numpy", "This artifact is a numpy array", "numpy")


def library(name: str, what: str, install: str) -> Foreign:
    """Import what a payload needs to be read.

    Raises:
        InvalidArgumentError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise InvalidArgumentError(
            f"{what}, and {name} is not installed here.", f"pip install {install}"
        ) from None


class NpyPayload:
    """The `.npy` file of an array, made piece by piece and not held.

    C and Fortran order are kept; what is neither is written in C order.

    Args:
        array: Must not change meanwhile.

    Raises:
        UnencodableValueError: Not a plain array, or one that holds Python objects.

    Source: numpy enhancement proposal 1, and its versions 2.0 and 3.0 of the header.
    """

    def __init__(self, array: Foreign) -> None:
        _check(array)
        self._array = array
        self._header = _header(array)

    def __len__(self) -> int:
        return len(self._header) + int(self._array.nbytes)

    @property
    def rows(self) -> int:
        """How many rows there are: items along the first axis, 1 where there is none."""
        return int(self._array.shape[0]) if self._array.ndim else 1

    def pieces(self) -> Iterator[bytes]:
        """Yield the payload, each piece small enough for the processor's cache."""
        yield self._header
        for part in self._parts():
            for start in range(0, len(part), _PIECE_BYTES):
                yield bytes(part[start : start + _PIECE_BYTES])

    def whole(self) -> bytes:
        """Return the payload in one piece: one copy of a contiguous array."""
        return b"".join((self._header, *self._parts()))

    def _parts(self) -> Iterator[memoryview | bytes]:
        array = self._array
        if not array.nbytes:
            return
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            array = array.T
        if array.flags.c_contiguous:
            # As plain bytes, since times and records cannot be looked at as memory.
            yield memoryview(array.reshape(-1).view("u1"))
            return
        numpy = sys.modules["numpy"]
        for part in numpy.nditer(
            array,
            flags=["external_loop", "buffered", "zerosize_ok"],
            buffersize=max(_PIECE_BYTES // array.itemsize, 1),
            order="C",
        ):
            yield part.tobytes("C")


def _check(array: Foreign) -> None:
    numpy = sys.modules["numpy"]
    if type(array) not in (numpy.ndarray, numpy.memmap):
        error = UnencodableValueError(f"a numpy {type(array).__name__} is more than its items")
        error.hint = "Return a plain array: numpy.asarray(value), or value.filled() of a mask."
        raise error
    if array.dtype.hasobject:
        error = UnencodableValueError(f"a numpy array of dtype {array.dtype.name} holds objects")
        error.hint = "Return array.tolist(), or give the array a dtype of its own."
        raise error


def _header(array: Foreign) -> bytes:
    facts = import_module("numpy.lib.format").header_data_from_array_1_0(array)
    text = "{" + "".join(f"{name!r}: {facts[name]!r}, " for name in sorted(facts)) + "}"
    version = 1 if text.isascii() and len(text) < _SHORT_HEADER - _ALIGNED_BYTES else 2
    try:
        body = text.encode(_CODECS[version])
    except UnicodeEncodeError:
        version, body = 3, text.encode()
    length_bytes = 2 if version == 1 else 4
    start = len(_MAGIC) + 2 + length_bytes
    body += b" " * (-(start + len(body) + 1) % _ALIGNED_BYTES) + b"\n"
    return _MAGIC + bytes((version, 0)) + len(body).to_bytes(length_bytes, "little") + body


@dataclass(frozen=True, slots=True)
class _Header:
    """What stands before the items of an `.npy` payload."""

    dtype: Foreign
    shape: tuple[int, ...]
    is_fortran: bool
    start_byte: int


def _read_header(payload: PartialPayload) -> _Header:
    """Read the header of a `.npy` payload.

    Raises:
        ValueError: It is none, or tells of Python objects.
    """
    head = payload.read(0, 12)
    version = head[6] if head[:6] == _MAGIC else 0
    if version not in _CODECS:
        message = "not a .npy payload"
        raise ValueError(message)
    start = 10 if version == 1 else 12
    length = int.from_bytes(head[8:start], "little")
    if length > _LONGEST_HEADER:
        message = f"a .npy header of {length:,} bytes"
        raise ValueError(message)
    text = payload.read(start, start + length).decode(_CODECS[version])
    try:
        facts = ast.literal_eval(text.strip())
        dtype = numpy_of_payload().lib.format.descr_to_dtype(facts["descr"])
        shape = tuple(int(side) for side in facts["shape"])
        is_fortran = bool(facts["fortran_order"])
    except (SyntaxError, TypeError, KeyError, RecursionError) as error:
        message = "a damaged .npy header"
        raise ValueError(message) from error
    if dtype.hasobject or min(shape, default=0) < 0:
        message = "a .npy payload of objects"
        raise ValueError(message)
    return _Header(dtype, shape, is_fortran, start + length)


def load_array(payload: bytes) -> Foreign:
    """Return the array of a `.npy` payload: a read-only view of its bytes.

    Raises:
        ValueError: The payload is damaged.
        InvalidArgumentError: numpy is not installed.
    """
    numpy = numpy_of_payload()
    header = _read_header(PartialPayload.of(payload))
    if math.prod(header.shape) * header.dtype.itemsize == 0:
        array = numpy.empty(header.shape, header.dtype)
    else:
        try:
            array = numpy.ndarray(
                header.shape,
                header.dtype,
                buffer=payload,
                offset=header.start_byte,
                order="F" if header.is_fortran else "C",
            )
        except TypeError as error:
            message = "a .npy payload shorter than its header says"
            raise ValueError(message) from error
    array.setflags(write=False)
    return array


def read_only(array: Foreign) -> Foreign:
    """Return a view of an array, through which it cannot be changed."""
    view = array.view()
    view.setflags(write=False)
    return view


def array_size(array: Foreign) -> int:
    """Return the bytes of an array's payload, without a look at its items."""
    return len(NpyPayload(array))


def array_text_bound(array: Foreign) -> int:
    """Return a number of bytes that the array as JSON never exceeds, without a look at its items.

    Per item, comma included: booleans 6, integers of 1, 2, 4 and 8 bytes 5, 7, 12 and 21 (without
    a sign 4, 6, 11 and 21), floats up to 8 bytes 25, longer and complex ones 51 a part, times 51,
    a character of text 6 and 3 a text, records the sum of their fields; 3 for each nested list.
    """
    lists, nested = 1, 1
    for side in array.shape[:-1]:
        nested *= side
        lists += nested
    return int(array.size) * _item_width(array.dtype) + 3 * lists


def _item_width(dtype: Foreign) -> int:
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        return int(math.prod(shape)) * (_item_width(inner) + 3) + 3
    if dtype.names is not None:
        return sum(_item_width(dtype[name]) for name in dtype.names) + 3
    width = _WIDTHS.get((dtype.kind, dtype.itemsize))
    if width is not None:
        return width
    if dtype.kind in "SUV":
        chars = int(dtype.itemsize) // (_UCS4_BYTES if dtype.kind == "U" else 1)
        return _ESCAPED * chars + 3
    return 2 * _WIDEST_NUMBER if dtype.kind == "c" else _WIDEST_NUMBER


def plain_array(array: Foreign) -> object:
    """Return an array as nested lists, or the one item of an array without dimensions.

    Numbers, text and bytes become Python's; times become ISO 8601 text of their own precision,
    durations `timedelta` where that holds them, complex numbers pairs, records lists.
    """
    kind = array.dtype.kind
    if array.dtype.names is not None:
        fields = [plain_array(array[name]) for name in array.dtype.names]
        return _records(fields, array.ndim)
    if kind == "M":
        return sys.modules["numpy"].datetime_as_string(array).tolist()
    if kind == "m":
        return _durations(array)
    if kind == "c":
        numpy = sys.modules["numpy"]
        return numpy.stack([array.real, array.imag], axis=-1).astype("f8").tolist()
    if kind == "f":
        array = array.astype("f8", copy=False)  # a longer float is no Python number
    return cast("object", array.tolist())


def _durations(array: Foreign) -> object:
    numpy = sys.modules["numpy"]
    if numpy.datetime_data(array.dtype)[0] not in {"Y", "M", "generic"}:
        # From 2.5 on numpy raises where what it did before was wrong, and unequal.
        with suppress(OverflowError):
            in_microseconds = array.astype("m8[us]")
            if (numpy.isnat(array) | (in_microseconds == array)).all():
                return in_microseconds.tolist()
    return array.astype(str).tolist()


def _records(fields: list[Foreign], dims: int) -> object:
    if not dims:
        return fields
    return [_records(list(row), dims - 1) for row in zip(*fields, strict=True)]


class ArrayRows:
    """The rows of a `.npy` payload: what lies along its first axis.

    In C order a window is one range behind the header; in Fortran order, where a row is spread
    over all of it, the whole payload.

    Args:
        payload: As much of it as is known.

    Raises:
        MissingRangeError: The header is not known yet.
        ValueError: The payload is damaged.
    """

    def __init__(self, payload: PartialPayload) -> None:
        self._payload = payload
        self._header = header = _read_header(payload)
        self.count = header.shape[0] if header.shape else 1
        self._items = math.prod(header.shape[1:])

    @property
    def least_chars(self) -> int:
        """What a row takes as JSON, at the very least."""
        return max(2 * self._items, 2)

    def take(self, start: int, stop: int) -> list[object]:
        """Return the rows of a window as plain values."""
        header, numpy = self._header, numpy_of_payload()
        row_bytes = self._items * header.dtype.itemsize
        shape = (stop - start, *header.shape[1:])
        if not row_bytes or stop == start:
            rows = numpy.empty(shape, header.dtype)
        elif header.is_fortran:
            rows = load_array(self._payload.read(0, self._payload.size_bytes))[start:stop]
        else:
            first = header.start_byte + start * row_bytes
            part = self._payload.read(first, first + (stop - start) * row_bytes)
            rows = numpy.ndarray(shape, header.dtype, buffer=part)
        return cast("list[object]", plain_array(rows))
