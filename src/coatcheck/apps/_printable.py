"""Hostile text as it may stand on a terminal or in a log: it drives nothing."""

from ..content import preview, visible

# Marks, embedding, override and isolation of writing direction could make a line look like another.
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LINE_ENDS = (0x2028, 0x2029)
_BEYOND_ASCII = (*range(0x80, 0xA0), *_DIRECTIONS)
# Controls are drawn as their pictures, so that nothing drives the terminal.
_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys(_LINE_ENDS, ord("↵")),
    **dict.fromkeys(_BEYOND_ASCII, 0xFFFD),
}
# JSON itself escapes what is below a space.
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in (0x7F, *_LINE_ENDS, *_BEYOND_ASCII)}


def printable(text: str) -> str:
    r"""Return `text` without escape sequences, and with pictures of all other controls.

    >>> printable("\x1b[2Jred\x07 alert")
    'red␇ alert'
    """
    return preview(text, len(text)).replace("\r\n", "\n").translate(_PICTURES)


def one_line(text: str) -> str:
    r"""Return `text` printable, on one line.

    >>> one_line("two\nlines")
    'two↵lines'
    """
    return printable(text).replace("\n", "↵").replace("\t", " ")


def harmless(text: str) -> str:
    r"""Return JSON that says the same, with what could drive a terminal escaped.

    >>> harmless('{"name": "\u202efdp.exe"}')
    '{"name": "\\u202efdp.exe"}'
    """
    return visible(text).translate(_JSON_ESCAPES)
