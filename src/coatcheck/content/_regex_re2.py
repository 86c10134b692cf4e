r"""Regular expressions by RE2, whose time grows with the text alone.

Its ``\b`` knows the letters of ASCII only. In other text each hit near other letters is looked at.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]
import stringzilla

from ..errors import InvalidArgumentError
from ._find import Hits, decoded
from ._index import skip_chars
from ._regex_hits import Span, Spanned, byte_spans, char_before, match_hits, span_hits
from ._regex_sets import LAST_CODE, RETURN, WORD, CharSet, write_hex
from ._regex_tree import Chars, Choice, Edge, Node, Repeat, Sequence, write

_re2: Any = re2  # without type hints

_MEMORY_BYTES = 4 * 1024 * 1024
"""Most that one program takes, with what it learns of the text."""
_LAST_ASCII = 0x7F
_NO_BYTE = r"[^\x00-\xff]"
_LINE_END = r"(?:\r?$)"
_EDGES = {"^": "^", "$": _LINE_END, "b": r"\b", "B": r"\B"}
_NO_BORDERS = {**_EDGES, "b": "", "B": ""}
_ASCII_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_ODD_CASES = (0x212A, 0x17F)
"""Letters whose other case is in ASCII: the signs of Kelvin and of the long s."""

# stringzilla ships no type hints.
_find = cast("Callable[[memoryview, bytes], int]", stringzilla.find)


class _Program(Protocol):
    def search(self, text: bytes, start: int, stop: int, /) -> Spanned | None: ...
    def finditer(self, text: bytes, start: int, stop: int, /) -> Iterator[Spanned]: ...


class Re2Engine:
    r"""Finds by RE2 alone: in ASCII, or a pattern without ``\b`` and ``\B``.

    Raises:
        InvalidArgumentError: The pattern is too large.
    """

    remedy: ClassVar[str] = ""

    def __init__(self, node: Node, *, is_ascii: bool) -> None:
        self._program = _ascii_program(node) if is_ascii else _program(node, _EDGES)

    def hits(self, text: bytes, start: int, stop: int, _seconds: float) -> Iterator[Hits[Spanned]]:
        return match_hits(self._program.finditer(text, start, stop))


class BorderedRe2Engine:
    r"""Finds a pattern with ``\b`` or ``\B`` by RE2, in any text.

    A first program finds what may be a hit: more than there are, but none too few. It is one
    where RE2's own ``\b`` is right, as between letters of ASCII. Else its line is searched anew,
    by a program for ASCII, or with the line written in one byte for each kind of character.

    Raises:
        InvalidArgumentError: The pattern is too large.
    """

    remedy: ClassVar[str] = ""

    def __init__(self, node: Node) -> None:
        self._loose = _program(node, _NO_BORDERS)
        # Beside a letter of ASCII, RE2 sees no border too few, only some too many.
        self._near = _program(node, _EDGES) if _is_safe(node) else None
        self._odd = _odd_letters(node) if self._near else ()
        self._ascii = _ascii_program(node)
        self._kinds = _Kinds(node)

    def hits(self, text: bytes, start: int, stop: int, _seconds: float) -> Iterator[Hits[Span]]:
        return span_hits(self._spans(text, start, stop))

    def _spans(self, text: bytes, start: int, stop: int) -> Iterator[Span]:
        part, near = memoryview(text)[start:stop], self._near
        if any(_find(part, letter) >= 0 for letter in self._odd):
            near = None
        matches = (near or self._loose).finditer(text, start, stop)
        while match := next(matches, None):
            first, last = match.span()
            if near and text[max(0, first - 1) : last + 1].isascii():
                yield first, last
                continue
            # Whatever begins earlier would have been found earlier.
            newline = text.find(b"\n", last, stop)
            end = stop if newline < 0 else newline
            if text[max(0, first - 1) : end + 1].isascii():
                yield from (each.span() for each in self._ascii.finditer(text, first, end))
            else:
                yield from self._kinds.spans(text, first, end)
            matches = (near or self._loose).finditer(text, end, stop)


class _Kinds(dict[int, int]):
    r"""Finds in text of which each character is written as one byte, the same for all of a kind.

    Characters are of a kind where the pattern cannot tell them apart. Those of words have the
    bytes of ASCII's letters, so that RE2's ``\b`` is right. It is a table for `str.translate`,
    and grows as characters are met.
    """

    def __init__(self, node: Node) -> None:
        super().__init__({ord("\n"): ord("\n")})
        self._node = node
        self._sets = tuple(dict.fromkeys((RETURN, *_sets_of(node))))
        self._byte_of: dict[tuple[bool, ...], int] = {}
        word = {byte for first, last in _ASCII_WORD for byte in range(first, last + 1)}
        self._free = {True: iter(sorted(word)), False: iter(sorted({*range(256)} - word - {10}))}
        self._program: _Program | None = None

    def __missing__(self, code: int) -> int:
        char = chr(code)
        kind = (*(char in chars for chars in self._sets), char in WORD)
        if kind not in self._byte_of:
            byte = next(self._free[kind[-1]], None)
            if byte is None:
                raise _too_large()
            self._byte_of[kind] = byte
            self._program = None  # it is written for the kinds that there were
        self[code] = self._byte_of[kind]
        return self[code]

    def spans(self, text: bytes, start: int, stop: int) -> Iterator[Span]:
        lead, end = char_before(text, start), skip_chars(text, 1, stop)
        string = decoded(text[lead:end])
        kinds = string.translate(self).encode("latin-1")
        if self._program is None:
            edges = {**_EDGES, "$": _LINE_END.replace(r"\r", self._write(RETURN))}
            self._program = _program(self._node, edges, self._write, is_latin=True)
        begin, behind = int(lead < start), int(stop < end)
        matches = self._program.finditer(kinds, begin, len(kinds) - behind)
        return byte_spans(string, lead, (match.span() for match in matches))

    def _write(self, chars: CharSet) -> str:
        place = self._sets.index(chars)
        codes = [write_hex(byte) for kind, byte in self._byte_of.items() if kind[place]]
        return f"[{''.join(codes)}]" if codes else _NO_BYTE


def _program(
    node: Node,
    edges: Mapping[str, str],
    write_set: Callable[[CharSet], str] | None = None,
    *,
    is_latin: bool = False,
) -> _Program:
    options = _re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    if is_latin:
        options.encoding = _re2.Options.Encoding.LATIN1
    source = write(node, write_set or (lambda chars: chars.write(write_hex, LAST_CODE)), edges)
    # Not `re2.compile`, which keeps the last 128 programs and all they have learned.
    make = cast("Callable[[bytes, object], _Program]", type(_re2.compile("")))
    try:
        return make(f"(?m){source}".encode(), options)
    except _re2.error:
        raise _too_large() from None


def _ascii_program(node: Node) -> _Program:
    return _program(node, _EDGES, lambda chars: chars.write(write_hex, _LAST_ASCII), is_latin=True)


def _too_large() -> InvalidArgumentError:
    return InvalidArgumentError(
        "The regular expression is too large.",
        "Use fewer counted repeats, and fewer different classes and letters.",
    )


def _sets_of(node: Node) -> Iterator[CharSet]:
    match node:
        case Chars(chars):
            yield chars
        case Edge():
            return
        case Sequence(nodes) | Choice(nodes):
            for each in nodes:
                yield from _sets_of(each)
        case Repeat():
            yield from _sets_of(node.node)


def _is_safe(node: Node, *, before: bool = False, after: bool = False) -> bool:
    r"""Return whether each ``\b`` has a letter of ASCII beside it, and there is no ``\B``.

    Args:
        node: A part of a pattern.
        before: Whether a letter of ASCII stands before it.
        after: Whether one stands behind it.
    """
    match node:
        case Chars():
            return True
        case Edge(kind):
            return kind in "^$" or (kind == "b" and (before or after))
        case Choice(nodes):
            return all(_is_safe(each, before=before, after=after) for each in nodes)
        case Repeat():
            # What stands beside it may be the same once more.
            before = before and _ends_in_word(node.node, last=True)
            after = after and _ends_in_word(node.node, last=False)
            return _is_safe(node.node, before=before, after=after)
        case Sequence(nodes):
            return all(
                _is_safe(
                    each,
                    before=_ends_in_word(nodes[place - 1], last=True) if place else before,
                    after=_ends_in_word(nodes[place + 1], last=False)
                    if nodes[place + 1 :]
                    else after,
                )
                for place, each in enumerate(nodes)
            )


def _ends_in_word(node: Node, *, last: bool) -> bool:
    """Return whether its last character, or its first, is a letter of ASCII in any match."""
    match node:
        case Chars(chars):
            return _is_ascii_word(chars)
        case Edge():
            return False
        case Sequence(nodes):
            return bool(nodes) and _ends_in_word(nodes[-1 if last else 0], last=last)
        case Choice(nodes):
            return all(_ends_in_word(each, last=last) for each in nodes)
        case Repeat():
            return node.least > 0 and _ends_in_word(node.node, last=last)


def _is_ascii_word(chars: CharSet) -> bool:
    """Return whether a set holds letters of ASCII alone, and their other cases."""
    return all(
        not part.is_negated
        and not part.categories
        and all(
            first in _ODD_CASES or any(low <= first and end <= high for low, high in _ASCII_WORD)
            for first, end in part.ranges
        )
        for part in chars.parts
    )


def _odd_letters(node: Node) -> tuple[bytes, ...]:
    """Return those other cases, where a pattern that is safe without them has them."""
    letters = map(chr, _ODD_CASES)
    sets = [chars for chars in _sets_of(node) if _is_ascii_word(chars)]
    return tuple(letter.encode() for letter in letters if any(letter in chars for chars in sets))
