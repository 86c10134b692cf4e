"""Sizes and ages as people type them."""

import re

from ..errors import InvalidArgumentError, shown

_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 24 * 3_600, "w": 7 * 24 * 3_600}
_BYTES = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip


def age_seconds(text: str) -> float:
    """Return an age in seconds.

    Raises:
        InvalidArgumentError: It is none.

    >>> age_seconds("7d"), age_seconds("1.5h")
    (604800.0, 5400.0)
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or match[2] not in _SECONDS:
        raise InvalidArgumentError(
            f"an age is a number with s, m, h, d or w, got {shown(text)}", "For a week: 7d"
        )
    return float(match[1]) * _SECONDS[match[2]]


def size_bytes(text: str) -> int:
    """Return a size in bytes.

    Raises:
        InvalidArgumentError: It is none.

    >>> size_bytes("10GB"), size_bytes("64 MiB"), size_bytes("512")
    (10000000000, 67108864, 512)
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or match[2].lower() not in _BYTES:
        raise InvalidArgumentError(
            f"a size is a number with kB, MB, GB, TB, KiB, MiB, GiB or TiB, got {shown(text)}",
            "For ten gigabytes: 10GB",
        )
    return int(float(match[1]) * _BYTES[match[2].lower()])
