"""A running total of what takes part in a quota."""

from ..records import dataclass

_FRESH_NS = 60 * 1_000_000_000
_ADDED_SHARE = 0.1


@dataclass(slots=True)
class Tally:
    """What lay in a scope or a store when that was counted, and what was put here since.

    Others put too, so it is counted anew after a minute, or once a tenth of the quota was put.
    """

    size_bytes: int
    counted_ns: int
    added_bytes: int = 0
    held_bytes: int = 0
    """What could not be made room of when that was tried last: live runs hold it."""

    def add(self, size_bytes: int) -> None:
        """Count what was put here."""
        self.size_bytes += size_bytes
        self.added_bytes += size_bytes

    def is_stale(self, now_ns: int, quota_bytes: int) -> bool:
        """Return whether it is time to count anew."""
        age_ns = now_ns - self.counted_ns
        return not 0 <= age_ns < _FRESH_NS or self.added_bytes > quota_bytes * _ADDED_SHARE

    def is_over(self, quota_bytes: int) -> bool:
        """Return whether there is to be made room, and some could be."""
        return self.size_bytes > max(quota_bytes, self.held_bytes + quota_bytes * _ADDED_SHARE)
