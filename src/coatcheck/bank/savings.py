"""What a journal adds up to, per tool and run: what was kept out of the context, at what cost."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from ..records import dataclass
from ._journal import TOOL, Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Calls added up. Tokens are estimates of one showing of each text.

    A result stays in the history and is sent again with every later call of the model, so what
    was kept out counts at least once; how often a model was called a journal does not know.
    """

    tool: str | None
    """None where they are of several tools."""
    run: str | None
    calls: int
    errors: int
    banked: int
    """Calls of which the model was shown a pointer in place of the result."""
    size_bytes: int
    """Of all results."""
    result_tokens: int
    """Of all results, had they been shown."""
    shown_tokens: int
    """Of what was shown for them: results that were small, and envelopes."""
    read_back_tokens: int
    """Of what our own tools answered."""
    schema_tokens: int
    """Of the definitions of our own tools, once for each call."""

    @property
    def kept_out_tokens(self) -> int:
        """Tokens that no model was sent, less all that the pointers cost; below 0 for a loss."""
        spent = self.shown_tokens + self.read_back_tokens + self.schema_tokens
        return self.result_tokens - spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where one artifact came from and went to, as far as a journal knows."""

    made_by: tuple[Call, ...]
    given_to: tuple[Call, ...]
    """Calls of tools that were handed its pointer."""
    read_by: tuple[Call, ...]
    derived_into: tuple[str, ...]
    """Pointers of what was made by calls that were handed it."""


def savings(calls: Iterable[Call]) -> list[Savings]:
    """Return what the calls of each tool and run add up to, the most kept out first.

    >>> rows = Call(at_ns=1, verb="tool", tool="rows", tokens=9_000, shown_tokens=120)
    >>> savings([rows, rows])[0].kept_out_tokens
    17760
    """
    of_one: defaultdict[tuple[str | None, str | None], list[Call]] = defaultdict(list)
    for call in calls:
        of_one[call.tool, call.run].append(call)
    added = [_added(each, tool, run) for (tool, run), each in of_one.items()]
    return sorted(added, key=lambda one: (-one.kept_out_tokens, one.tool or "", one.run or ""))


def total(calls: Iterable[Call]) -> Savings:
    """Return what all calls add up to."""
    return _added(list(calls), None, None)


def lineage(calls: Iterable[Call], pointer: str) -> Lineage:
    """Return where the artifact behind `pointer` came from and went to.

    Args:
        calls: Of a journal, oldest first.
        pointer: Without a selector; pointers with one are of the same artifact.
    """
    made: list[Call] = []
    given: list[Call] = []
    read: list[Call] = []
    derived: dict[str, None] = {}
    for call in calls:
        if pointer in call.pointers_out:
            made.append(call)
        if any(each.partition("#")[0] == pointer for each in call.pointers_in):
            (given if call.verb == TOOL else read).append(call)
            derived.update(dict.fromkeys(out for out in call.pointers_out if out != pointer))
    return Lineage(
        made_by=tuple(made),
        given_to=tuple(given),
        read_by=tuple(read),
        derived_into=tuple(derived),
    )


def _added(calls: list[Call], tool: str | None, run: str | None) -> Savings:
    sums: Counter[str] = Counter()
    for call in calls:
        if call.verb == TOOL:
            sums["result"] += call.tokens
            sums["shown"] += call.shown_tokens
        else:
            sums["read back"] += call.shown_tokens
    return Savings(
        tool=tool,
        run=run,
        calls=len(calls),
        errors=sum(call.is_error for call in calls),
        banked=sum(call.verb == TOOL and bool(call.pointers_out) for call in calls),
        size_bytes=sum(call.size_bytes for call in calls if call.verb == TOOL),
        result_tokens=sums["result"],
        shown_tokens=sums["shown"],
        read_back_tokens=sums["read back"],
        schema_tokens=sum(call.schema_tokens for call in calls),
    )
