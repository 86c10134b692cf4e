"""Whole numbers of any length as their digits, both ways, past the bounds of `int` and `str`.

CPython converts at most 4,300 digits by default, and fewer where the host says so. What is longer
is cut into pieces, and those are joined in pairs: each time half as many, twice as long.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact
from typing import TypeVar

T = TypeVar("T", int, Decimal)

MOST_DIGITS = 1_000_000
"""Longest number that is read or written: text that a tool returned may hold far longer ones."""

_PIECE_DIGITS = 512
_PIECE_BITS = 1_024
"""Pieces that every interpreter converts: no host can set the limit below 640 digits."""

_BITS_OF_MOST_DIGITS = 3_321_929


def digits_of(number: int) -> str | None:
    """Return the decimal digits of `number`, None where there are more than a million.

    >>> digits_of(-12), len(digits_of(10**5_000) or "")
    ('-12', 5001)
    """
    bits = number.bit_length()
    if bits <= _PIECE_BITS:
        return str(number)
    if bits > _BITS_OF_MOST_DIGITS:
        return None
    step = _PIECE_BITS // 8
    rest = abs(number).to_bytes(-(-bits // 8), "little")
    pieces = [
        Decimal(int.from_bytes(rest[at : at + step], "little")) for at in range(0, len(rest), step)
    ]
    # Inexact is trapped: a digit that was lost would be an error, never a wrong number.
    exact = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])
    base = Decimal(1 << _PIECE_BITS)
    text = str(_joined(pieces, base, exact.multiply, exact.add))
    return None if len(text) > MOST_DIGITS else f"-{text}" if number < 0 else text


def number_of(digits: str) -> int:
    """Return the whole number that `digits`, perhaps after a minus sign, are the text of.

    Raises:
        ValueError: They are no digits, or more than a million.

    >>> number_of("-12"), number_of("9" * 5_000) == 10**5_000 - 1
    (-12, True)
    """
    if len(digits) <= _PIECE_DIGITS:
        return int(digits)
    if len(digits) > MOST_DIGITS + 1:
        message = f"a number has more than {MOST_DIGITS:,} digits"
        raise ValueError(message)
    unsigned = digits.removeprefix("-")
    stops = range(len(unsigned), 0, -_PIECE_DIGITS)
    pieces = [int(unsigned[max(stop - _PIECE_DIGITS, 0) : stop]) for stop in stops]
    base: int = 10**_PIECE_DIGITS
    number = _joined(pieces, base, int.__mul__, int.__add__)
    return -number if len(unsigned) < len(digits) else number


def _joined(pieces: list[T], base: T, multiply: Callable[[T, T], T], add: Callable[[T, T], T]) -> T:
    """Return the number whose digits to `base` are `pieces`, lowest first."""
    while len(pieces) > 1:
        pairs = zip(pieces[::2], pieces[1::2], strict=False)
        odd = pieces[-1:] if len(pieces) % 2 else []
        pieces = [add(multiply(high, base), low) for low, high in pairs] + odd
        base = multiply(base, base)
    return pieces[0]
