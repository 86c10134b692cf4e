"""Which call of a model goes on: a replay of the same one banks to the same pointers."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar

from ..records import dataclass


@dataclass(slots=True)
class ModelCall:
    """One call of a mirrored tool by a model."""

    key: str
    """The run, and what names a call in it: the same for a replay."""
    tool: str
    puts_off: bool = False
    """Whether the journal is told by whoever made the call, and not once the tool is done."""
    given: tuple[object, ...] = ()
    """The arguments, once the tool is done."""
    is_noted: bool = True
    """Whether there is nothing left to tell the journal."""

    def takes_note(self, tool: str | None, given: Iterable[object]) -> bool:
        """Take what the journal is to be told later; return whether this call does that."""
        if not self.puts_off or tool != self.tool:
            return False
        self.given, self.is_noted = tuple(given), False
        return True


_CALL: ContextVar[ModelCall | None] = ContextVar("coatcheck call", default=None)


@contextmanager
def calling(call: ModelCall) -> Generator[None]:
    """Let what mirrored tools return in the block be banked under the key of a call.

    It holds in the task of the block and in those started there. The name of the tool is part of
    what is kept, so a tool that calls another one makes no difference. What another result was
    banked under has another pointer.
    """
    token = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(token)


def current_call() -> ModelCall | None:
    """Return the call that goes on here, None where none does."""
    return _CALL.get()
