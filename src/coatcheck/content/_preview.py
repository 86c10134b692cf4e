"""The head of a text as a model may see it: verbatim, bounded, safe on a terminal and in JSON."""

import re
from collections.abc import Callable, Iterator
from typing import cast

import stringzilla

LONGEST_CLUSTER = 64
"""Code points from which on a grapheme cluster is cut inside: no script needs as many."""

# ECMA-48: control sequences, control strings (up to their end, a line's end, or whatever cuts
# them off), then any other escape sequence. Every part behind the first character is optional,
# so that a sequence that the end of the head cuts does not leak.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_ESCAPE_START = re.compile("[\x1b\x90\x98\x9b\x9d-\x9f]")
# Long text in base64, up to where it is looked at; in quotes only what has letters of both
# kinds and digits, as identifiers and words have not all along.
_DATA = re.compile(
    r"(?:;base64,|\"(?=[A-Za-z+/]{0,60}[0-9])(?=[A-Z0-9+/]{0,60}[a-z])(?=[a-z0-9+/]{0,60}[A-Z]))"
    r"([A-Za-z0-9+/_-]{100,})",
    re.ASCII,
)
_SHOWN_DATA_CHARS = 40
# What would end a line, hide or reorder what stands around it, or end the quotation.
_UNQUOTABLE = re.compile(
    "[`\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")

# stringzilla ships no type hints.
_graphemes = cast("Callable[[str], Iterator[object]]", stringzilla.utf8_graphemes)


def preview(head: str, limit_chars: int) -> str:
    r"""Return the first `limit_chars` visible code points of `head`, or less.

    Escape sequences are left out, a lone surrogate is shown as U+FFFD, and no grapheme cluster
    of up to 64 code points is split. Other control characters stay.

    Args:
        head: Raw text, best `head_chars` long or whole.
        limit_chars: Longest result, 0 or more.

    Source: ECMA-48, sections 5.4 and 5.6; Unicode Standard Annex 29, section 3.

    >>> preview("\x1b[31mFAIL\x1b[0m ok", 6)
    'FAIL o'
    """
    return _cut(head, limit_chars)[0]


def shown_preview(head: str, length_chars: int, limit_chars: int) -> str:
    """Return the preview as an envelope shows it: where cut, with the count of what follows.

    It ends soon after the start of text in base64, be it a data URI or in quotes.

    Args:
        head: Raw text, best `head_chars` long or whole.
        length_chars: Of the whole payload.
        limit_chars: Longest preview, the count not included; 0 gives an empty text.

    >>> shown_preview("one two", 7, 3)
    'one … (4 more characters)'
    """
    data = _DATA.search(head)
    if data is not None:
        # More of it would tell nobody anything.
        head = head[: data.start(1) + _SHOWN_DATA_CHARS]
    text, consumed = _cut(head, limit_chars)
    more = length_chars - consumed
    if more <= 0 or limit_chars == 0:
        return text
    return f"{text} … ({more:,} more character{'s' if more > 1 else ''})"


def head_chars(limit_chars: int) -> int:
    """Return how many raw characters a preview of `limit_chars` wants to be handed.

    Text in full colour has some thirty characters of escapes to each one that is seen.
    """
    return 32 * limit_chars + 2_048 if limit_chars else 0


def visible(text: str) -> str:
    r"""Return `text` with each lone surrogate shown as U+FFFD, so that it encodes strictly.

    >>> visible("ok \ud83d end").encode()
    b'ok \xef\xbf\xbd end'
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def plain(text: str, limit_chars: int) -> str:
    """Return the whole of `text` as a preview would show it, up to the limit."""
    return whole_clusters(_without_escapes(text), limit_chars)


def quoted(text: str, limit_chars: int, *, from_end: bool = False) -> str:
    r"""Return the head of hostile text, or its end, quoted so that it cannot forge what follows.

    On one line, between backticks; a backtick, a control character and what changes the
    direction of text are escaped. ``…`` outside of the quotation tells that text was left out.

    Args:
        text: Raw text.
        limit_chars: Most characters between the backticks, escapes not counted.
        from_end: Quote the last characters in place of the first.

    >>> quoted("a`\nb", 3)
    '`a\\x60\\n`…'
    """
    wanted = head_chars(limit_chars)
    near = text[max(0, len(text) - wanted) :] if from_end else text[:wanted]
    shown = _without_escapes(near)
    part = last_clusters(shown, limit_chars) if from_end else whole_clusters(shown, limit_chars)
    mark = "…" if len(part) < len(shown) or len(near) < len(text) else ""
    inside = _UNQUOTABLE.sub(_escape, part)
    return f"{mark}`{inside}`" if from_end else f"`{inside}`{mark}"


def _without_escapes(text: str) -> str:
    return visible(_ESCAPE.sub("", text))


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char == "`":
        return r"\x60"
    return char.encode("unicode_escape").decode()


def last_clusters(text: str, limit_chars: int) -> str:
    """Return the longest end of `text` up to the limit that splits no grapheme cluster.

    Args:
        text: Without lone surrogates.
        limit_chars: Longest result, 0 or more.
    """
    border = len(text) - limit_chars
    if border <= 0:
        return text
    around = text[border - 1 : border + 1]
    if around.isascii() and around != "\r\n":
        return text[border:]
    start = 0
    for cluster in _graphemes(text):
        if start >= border:
            break
        length = len(str(cluster))
        start += length
        if start > border and length > LONGEST_CLUSTER:
            start = border
    return text[start:]


def whole_clusters(text: str, limit_chars: int) -> str:
    """Return the longest head of `text` up to the limit that splits no grapheme cluster.

    Args:
        text: Without lone surrogates.
        limit_chars: Longest result, 0 or more.
    """
    if len(text) <= limit_chars:
        return text
    around = text[max(0, limit_chars - 1) : limit_chars + 1]
    if around.isascii() and around != "\r\n":
        return text[:limit_chars]  # between two ASCII characters there is always a border
    stop = 0
    for cluster in _graphemes(text[: limit_chars + LONGEST_CLUSTER + 1]):
        length = len(str(cluster))
        if stop + length > limit_chars:
            if length > LONGEST_CLUSTER:
                stop = limit_chars
            break
        stop += length
    return text[:stop]


def _cut(head: str, limit_chars: int) -> tuple[str, int]:
    """Return the preview, and where in the raw text it ends."""
    # One cluster more than the limit shows whether one is split there.
    wanted = limit_chars + LONGEST_CLUSTER + 1
    pieces: list[tuple[int, str]] = []
    seen = position = 0
    while position < len(head) and seen < wanted:
        stop = min(position + wanted - seen, len(head))
        start = _ESCAPE_START.search(head, position, stop)
        escape = _ESCAPE.match(head, start.start()) if start else None
        pieces.append((position, head[position : escape.start() if escape else stop]))
        seen += len(pieces[-1][1])
        position = escape.end() if escape else stop
    text = whole_clusters(visible("".join(piece for _, piece in pieces)), limit_chars)
    if len(text) == seen and position == len(head):
        return text, len(head)
    return text, _raw_end(pieces, len(text))


def _raw_end(pieces: list[tuple[int, str]], chars: int) -> int:
    """Return where in the raw text the first `chars` visible characters end."""
    end = 0
    for start, piece in pieces:
        if chars <= 0:
            break
        end = start + min(chars, len(piece))
        chars -= len(piece)
    return end
