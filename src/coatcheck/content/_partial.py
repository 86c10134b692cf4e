"""A payload of which only some ranges are known, for readers that look up what they need."""

_LEAST_BYTES = 8_192


class MissingRangeError(Exception):
    """A reader needs a range that is not known yet: fetch it, add it, and start anew."""

    def __init__(self, start_byte: int, stop_byte: int) -> None:
        super().__init__(f"bytes {start_byte} to {stop_byte} are not known")
        self.start_byte = start_byte
        self.stop_byte = stop_byte


class PartialPayload:
    """Some ranges of a payload.

    Formats are read by code that knows nothing of stores. What it misses is fetched, and it
    starts anew, so each range is fetched once and nothing else is.

    Args:
        size_bytes: Of the whole payload.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._known: list[tuple[int, bytes]] = []

    @classmethod
    def of(cls, payload: bytes) -> "PartialPayload":
        """Return a payload of which all is known."""
        whole = cls(len(payload))
        whole.add(0, payload)
        return whole

    def add(self, start_byte: int, piece: bytes) -> None:
        """Take a range that was fetched."""
        self._known.append((start_byte, piece))

    def read(self, start_byte: int, stop_byte: int) -> bytes:
        """Return a range, clipped to the payload.

        Raises:
            MissingRangeError: It is not known. The range asked for is 8 KiB or more, where the
                payload is: headers and footers are read in small bites.

        >>> payload = PartialPayload.of(b"0123456789")
        >>> payload.read(8, 99)
        b'89'
        """
        start_byte, stop_byte = min(start_byte, self.size_bytes), min(stop_byte, self.size_bytes)
        for start, piece in self._known:
            if start <= start_byte and stop_byte <= start + len(piece):
                return piece[start_byte - start : stop_byte - start]
        stop = min(max(stop_byte, start_byte + _LEAST_BYTES), self.size_bytes)
        raise MissingRangeError(max(0, min(start_byte, stop - _LEAST_BYTES)), stop)
