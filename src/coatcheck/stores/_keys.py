"""What a key, a folder and a window may be. Checked before anything is looked up or opened."""

import re
from collections.abc import Iterable, Iterator, Mapping

from ..errors import shown

_SEGMENT = r"[A-Za-z0-9_~%-][A-Za-z0-9_~%.-]{0,199}"
# In any case: some file systems hold "TMP" and "tmp" to be one folder.
_KEY = re.compile(rf"(?!(?i:tmp)(?:/|\Z)){_SEGMENT}(?:/{_SEGMENT})*", re.ASCII)
_LAST = re.compile(_SEGMENT, re.ASCII)
_LONGEST_KEY = 900
_RULE = (
    "1 to 200 letters, digits or _~%.- between slashes, no dot first, not below tmp/, "
    f"at most {_LONGEST_KEY} characters"
)


def is_key(text: str) -> bool:
    """Return whether `text` may be a key.

    >>> is_key("s/review-1421/records/1"), is_key("../etc/passwd")
    (True, False)
    """
    return len(text) <= _LONGEST_KEY and _KEY.fullmatch(text) is not None


def split_key(key: str) -> list[str]:
    """Return the segments of a key.

    Raises:
        ValueError: `key` is none.
    """
    if not is_key(key):
        raise ValueError(f"a key is {_RULE}; got {shown(key)}")
    return key.split("/")


def split_folder(folder: str) -> list[str]:
    """Return the segments of a folder, which is a key and a slash.

    Raises:
        ValueError: `folder` is none.
    """
    if not folder.endswith("/") or not is_key(folder[:-1]):
        raise ValueError(f"a folder ends in / and before that is {_RULE}; got {shown(folder)}")
    return folder[:-1].split("/")


def keys_in(folder: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the keys of a folder, which is one, that those of `names` make that can.

    >>> [*keys_in("s/default/records/", ["1", ".hidden", "a b"])]
    ['s/default/records/1']
    """
    longest, is_last = _LONGEST_KEY - len(folder), _LAST.fullmatch
    return (folder + name for name in names if len(name) <= longest and is_last(name))


def check_batch(keys: Iterable[str], lives: Mapping[str, float], unless: str | None) -> None:
    """Pass what `put_many` is asked for.

    Args:
        keys: Of the payloads.
        lives: Times to live, by key.
        unless: The key that must be free.

    Raises:
        ValueError: One of them is no key, or a time is not more than 0.
    """
    for key in {*keys, *lives, *(() if unless is None else (unless,))}:
        split_key(key)
    for seconds in lives.values():
        check_ttl(seconds)


def check_window(start_byte: int, stop_byte: int) -> None:
    """Pass a window that counts from 0 and does not end before it starts.

    Raises:
        ValueError: It does neither.
    """
    if not 0 <= start_byte <= stop_byte:
        raise ValueError(f"a window needs 0 <= start <= stop, got [{start_byte}, {stop_byte})")


def check_ttl(ttl_seconds: float) -> None:
    """Pass a time to live of something.

    Raises:
        ValueError: It is not more than 0.
    """
    if not ttl_seconds > 0:
        raise ValueError(f"ttl_seconds must be more than 0, got {ttl_seconds}")
