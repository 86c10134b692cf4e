"""The glimpse of text: how much there is, what its log tells, the first error, how it ends."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, cast

import stringzilla

from ._index import count_chars
from ._log import read_log
from ._preview import plain, quoted
from ._tokens import estimate_tokens

# What tells of an error, and which form of it: read back from where the plain text was found.
_ERROR_WORDS = (
    ("ERROR", re.compile(r"\bERROR\b")),
    ("FATAL", re.compile(r"\bFATAL\b")),
    ("CRITICAL", re.compile(r"\bCRITICAL\b")),
    ("FAILED", re.compile(r"\bFAILED\b")),
    ("Traceback", re.compile(r"\bTraceback\b")),
    # The name of a class: prose has the word too, and forms have it in headings.
    ("Exception", re.compile(r"(?<=\w)Exception\b|\bException:")),
    ("Error:", re.compile(r"Error:")),
    # With a message behind it, as YAML has keys of that name.
    ("error:", re.compile(r"\berror:[^\S\n]*\S")),
    ("panic:", re.compile(r"\bpanic:")),
)
SEARCHED_HEAD_CHARS = 4_000_000
SEARCHED_TAIL_CHARS = 1_000_000
_MOST_REFUSED = 1_000
"""Places where an error word is part of another, after which no more are looked at."""

_LINE_CHARS = 800
"""Most characters of a line that are looked at to show it: escape sequences take some."""
_LEAD_CHARS = 80
"""Most characters shown of a line before its error word."""
_SHOWN_CHARS = (160, 100, 60, 40)
"""Most characters of a line that are shown: the first that fits."""
_BLANKS = re.compile(r"[ \t]{16,}")
"""What lays out a page, and would leave no room for words."""
_END_CHARS = 65_536
"""How far from the end the last lines are looked for."""
_ERROR_LINES = 5
_SEEN_CHARS = 200
"""Text up to this length is whole in the preview: nothing is left to say of it."""

_LONGEST_WORD_CHARS = max(len(word) for word, _ in _ERROR_WORDS)
_PIECE_CHARS = 131_072
"""Text is searched as UTF-8, so much of it at once: that is many times quicker."""

# stringzilla ships no type hints. It is several times quicker on ASCII; other text it would
# have to encode first.
_find = cast("Callable[[bytes, str, int, int], int]", stringzilla.find)
_count_ascii = cast("Callable[[str, str, int, int], int]", stringzilla.count)


class _ErrorLine(NamedTuple):
    number: int
    text: str
    cut: bool
    """The line started earlier than `text`."""
    is_first: bool

    def part(self, chars: int) -> str:
        label = "first error, line" if self.is_first else "error, line"
        return f"{label} {self.number:,}: {'…' if self.cut else ''}{quoted(self.text, chars)}"


def glimpse_text(
    text: str,
    budget_tokens: int,
    *,
    line_count: int | None,
    is_error: bool,
    length_chars: int | None = None,
    head_length: int | None = None,
) -> tuple[str, dict[str, object]] | None:
    """Return the glimpse of `text` and its facts, None where it has nothing to say.

    Args:
        text: Of any length; at most some 5,000,000 characters are searched for an error.
        budget_tokens: Most estimated tokens.
        line_count: Lines of `text` where they are known; counted otherwise.
        is_error: Show several last lines, as the reason of a failure mostly is there.
        length_chars: Of the whole, where `text` is its head and its tail.
        head_length: How much of `text` is the head then.
    """
    if len(text) <= _SEEN_CHARS:
        return None
    if line_count is None:
        line_count = _count_newlines(text, 0, len(text)) + (not text.endswith("\n"))
    length = len(text) if length_chars is None else length_chars
    size = f"{line_count:,} line{'s' if line_count > 1 else ''}, {length:,} characters"
    facts: dict[str, object] = {"format": "text", "lines": line_count, "characters": length}
    last_lines = _last_lines(text, _ERROR_LINES if is_error else 1)
    if last_lines:
        facts["lastLine"] = plain(last_lines[-1], _SHOWN_CHARS[0])
    if line_count == 1:
        texts = _one_line_texts(size, text)
    else:
        error = _first_error(text, line_count, head_length)
        if error is not None:
            line = plain(error.text, _SHOWN_CHARS[0])
            facts["error"] = {"lineNumber": error.number, "text": line}
        log = read_log(text, is_part=length > len(text))
        if log.levels:
            facts |= {"levels": dict(log.levels), "sampled": log.sampled}
        if log.span:
            facts |= {"from": log.span[0], "to": log.span[1]}
        # Its lines are alike: the last one has to leave some of the budget, the error has not.
        last_part = 0.75 if log.levels and not is_error else 1
        texts = _texts(size, log.parts(), error, last_lines, last_part)
    fitting = (text for text, part in texts if estimate_tokens(text) <= part * budget_tokens)
    shown = next(fitting, None)
    return None if shown is None else (shown, facts)


def _texts(
    size: str,
    log: Sequence[str],
    error: _ErrorLine | None,
    last_lines: list[str],
    last_part: float,
) -> Iterator[tuple[str, float]]:
    """Yield renderings of the same, the fullest first, and the part of the budget each may take.

    What has last lines may take `last_part`.
    """
    # The error may be in the last line.
    if error is not None and last_lines and last_lines[-1].startswith(error.text):
        last_lines = last_lines[:-1]
    for lines in range(len(last_lines), 0, -1):
        label = "last line" if lines == 1 else f"last {lines} lines"
        for chars in _SHOWN_CHARS if lines == 1 else _SHOWN_CHARS[:-1]:
            ends = " ".join(quoted(line, chars) for line in last_lines[-lines:])
            # The error tells more than the end does.
            for told in _cut(
                error, (_SHOWN_CHARS[0], chars) if last_part == 1 else _SHOWN_CHARS[:1]
            ):
                yield "; ".join([size, *log, *told, f"{label}: {ends}"]), last_part
    for parts in ([size, *log], [size, *log[:1]], [size]):
        for told in _cut(error, _SHOWN_CHARS):
            yield "; ".join([*parts, *told]), 1
    yield "; ".join([size, *log[:1]]), 1
    yield size, 1


def _cut(error: _ErrorLine | None, lengths: Sequence[int]) -> Iterator[list[str]]:
    """Yield what is told of the error, nothing where there is none, at each length."""
    for chars in lengths if error else lengths[:1]:
        yield [error.part(chars)] if error else []


def _one_line_texts(size: str, line: str) -> Iterator[tuple[str, float]]:
    for chars in _SHOWN_CHARS[1:]:
        end = quoted(line[-_LINE_CHARS:].rstrip(), chars, from_end=True)
        yield f"{size}; ends: {end}", 1
    yield size, 1


def _last_lines(text: str, count: int) -> list[str]:
    """Return the last lines that are not blank, in order, each cut to what can be shown."""
    lines = reversed(text[-_END_CHARS:].split("\n"))
    filled = (line for line in lines if line and not line.isspace())
    return [_laid_out(line[:_LINE_CHARS]) for line in islice(filled, count)][::-1]


def _laid_out(line: str) -> str:
    return _BLANKS.sub(" … ", line.strip())


def _first_error(text: str, line_count: int, head_length: int | None) -> _ErrorLine | None:
    """Return the first line that tells of an error; of a very long text, one near either end."""
    head_stop = min(len(text) if head_length is None else head_length, SEARCHED_HEAD_CHARS)
    found = _find_error(text, 0, head_stop)
    is_first = found is not None
    if found is None and head_stop < len(text):
        found = _find_error(text, max(head_stop, len(text) - SEARCHED_TAIL_CHARS), len(text))
    if found is None:
        return None
    if is_first:
        number = _count_newlines(text, 0, found) + 1
    else:
        ended = line_count - (not text.endswith("\n"))
        number = ended - _count_newlines(text, found, len(text)) + 1
    # The word itself must be among what is shown.
    start = text.rfind("\n", max(0, found - _LEAD_CHARS), found) + 1
    cut = start == 0 and found > _LEAD_CHARS
    start = found - _LEAD_CHARS if cut else start
    line = _laid_out(text[start : start + _LINE_CHARS].partition("\n")[0])
    return _ErrorLine(number, line, cut, is_first)


def _find_error(text: str, start: int, stop: int) -> int | None:
    """Return where the first error word is that is a word of its own."""
    refused: Counter[str] = Counter()
    for at in range(start, stop, _PIECE_CHARS):
        end = min(at + _PIECE_CHARS, stop)
        piece = text[at:end].encode("utf-8", "surrogatepass")
        # A word may begin in this piece, and end in the next.
        behind = text[end : min(end + _LONGEST_WORD_CHARS - 1, stop)]
        found = _find_in(
            piece + behind.encode("utf-8", "surrogatepass"), len(piece), text, at, refused
        )
        if found is not None:
            return found
    return None


def _find_in(piece: bytes, stop: int, text: str, at: int, refused: Counter[str]) -> int | None:
    """Return where in `text` the first error word is that begins before byte `stop` of a piece.

    Args:
        piece: Of `text`, as UTF-8.
        stop: In `piece`.
        text: The whole.
        at: Where in `text` the piece begins.
        refused: How often each word was part of another so far.
    """
    best: int | None = None
    end = len(piece)
    for word, form in _ERROR_WORDS:
        position, chars = 0, at
        while refused[word] < _MOST_REFUSED:
            found = _find(piece, word, position, end)
            if not 0 <= found < stop:
                break
            chars += count_chars(memoryview(piece)[position:found])
            if form.match(text, chars):
                best, end = chars, found
                break
            refused[word] += 1
            position, chars = found + len(word), chars + len(word)
    return best


def _count_newlines(text: str, start: int, stop: int) -> int:
    if text.isascii():
        return _count_ascii(text, "\n", start, stop)
    return text.count("\n", start, stop)
