"""Keys of entries: a namespace, a colon, and whatever names the entry in it."""

from ..errors import InvalidArgumentError, shown

SHARED = "shared:"
"""The one namespace that models write to."""

LONGEST_KEY = 500
"""Characters: a key stands in listings, and in what a model is told to read."""


class MemoryKeys:
    r"""Makes the keys of entries; `memory_keys` is one.

    A name is taken as it is, whatever is in it: the namespace comes first, so none leads into
    another namespace.

    >>> memory_keys.step("s1"), memory_keys.input("x\ny"), memory_keys.shared("task:a")
    ('step:s1', 'input:x\ny', 'shared:task:a')
    """

    def step(self, id: str) -> str:  # noqa: A002 - the word of the plan
        """Return the key of a step's result."""
        return f"step:{id}"

    def task(self, id: str) -> str:  # noqa: A002 - the word of the plan
        """Return the key of a task's result."""
        return f"task:{id}"

    def input(self, key: str) -> str:
        """Return the key of an input."""
        return f"input:{key}"

    def shared(self, key: str) -> str:
        """Return the key of what agents share."""
        return f"{SHARED}{key}"


memory_keys = MemoryKeys()


def check_key(key: str) -> None:
    """Pass what may be the key of an entry.

    Raises:
        InvalidArgumentError: It is empty, too long, or holds half of a character.
    """
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
        raise InvalidArgumentError(
            f"the key of an entry has 1 to {LONGEST_KEY} characters, got {shown(key)}",
            "Choose a short key.",
        )
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"the key {shown(key)} holds half of a surrogate pair", "Choose a key of whole letters."
        ) from None
