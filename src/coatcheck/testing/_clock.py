"""Time that stands still until a test moves it."""


class ManualClock:
    """A `clock` argument for whatever takes one. Call it for the time, `advance` it at will.

    Args:
        now: Seconds since the epoch at the start.

    >>> clock = ManualClock(1_000.0)
    >>> clock.advance(60)
    >>> clock()
    1060.0
    """

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self.now += seconds
