r"""Regular expressions as a tree: what is accepted, what it means, and what is refused, and why.

The syntax is what Python's `re` and RE2 share, and ``\w``, ``\d`` and ``\s`` are those of Unicode.
A match lies within one line, and is never empty.
"""

from typing import NoReturn

from ..errors import InvalidArgumentError, shown
from ._regex_sets import ANY, CATEGORIES, DIGIT, LAST_CODE, SPACE, WORD, CharSet, Part, charset, one
from ._regex_tree import Chars, Choice, Edge, Node, Repeat, Sequence, can_be_empty, written_out

MOST_CHARACTERS = 1_000
"""Most that a pattern may stand for, its repeats written out. It bounds the work for each byte."""

_MOST_DEEP = 50
"""Groups within each other."""

_CLASSES = {"d": DIGIT, "s": SPACE, "w": WORD}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdefABCDEF")

_ONE_LINE = "A match lies within one line. Use ^ and $, or search for each line's part alone."
_AROUND = "Match the text itself: the snippet shows what stands around it."
_GROUPS = "Groups are (…), (?:…), (?P<name>…) and (?i:…)."
_PROPERTIES = (
    r"Properties are general categories: \p{L}, \p{Lu}, \p{N}. "
    r"For a script give a range: [\u0400-\u04ff]."
)
_NO_GROUP = {
    "(?=": "a lookahead",
    "(?!": "a lookahead",
    "(?<=": "a lookbehind",
    "(?<!": "a lookbehind",
    "(?>": "an atomic group",
    "(?P=": "a backreference",
    "(?P>": "a recursion",
    "(?R": "a recursion",
    "(?(": "a condition",
    "(?#": "a comment",
    "(?|": "a branch reset",
}
_NO_ESCAPE = {
    "A": ("an anchor to the whole text", _ONE_LINE),
    "z": ("an anchor to the whole text", _ONE_LINE),
    "Z": ("an anchor to the whole text", _ONE_LINE),
    "R": ("a line break", _ONE_LINE),
    "Q": ("a quotation", "Put a backslash before each special character, or leave out regex."),
    "0": ("an octal escape", r"Write the character itself, or \x and two hex digits."),
    "N": ("a character's name", r"Write the character itself, or \u and four hex digits."),
    "k": ("a backreference", _AROUND),
    "g": ("a backreference", _AROUND),
}


def parse_regex(pattern: str, *, ignore_case: bool) -> Node:
    """Return what `pattern` means.

    Args:
        pattern: As a model wrote it.
        ignore_case: Until the pattern itself says otherwise, by ``(?i)`` or ``(?-i)``.

    Raises:
        InvalidArgumentError: It is no pattern, uses what not all engines have, could match
            where there is no character, or stands for more than 1,000 of them.
    """
    node = _Parser(pattern, ignore_case=ignore_case).parsed()
    if can_be_empty(node):
        raise InvalidArgumentError(
            f"{_named(pattern)} needs no character, so it matches everywhere.",
            "Let it need one character at least, as by + in place of *.",
        )
    if written_out(node) > MOST_CHARACTERS:
        raise InvalidArgumentError(
            f"{_named(pattern)} is too long with its repeats written out: it has "
            f"{written_out(node):,} characters, {MOST_CHARACTERS:,} at most.",
            "Use + or * in place of a counted repeat.",
        )
    return node


class _Parser:
    """Reads a pattern from left to right, once."""

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._ignores_case = ignore_case

    def parsed(self) -> Node:
        node = self._choice()
        if self._at < len(self._pattern):
            self._refuse("a ) that closes no group", r"Write \) for the character.")
        return node

    def _choice(self) -> Node:
        nodes = [self._sequence()]
        while self._takes("|"):
            nodes.append(self._sequence())
        return nodes[0] if len(nodes) == 1 else Choice(tuple(nodes))

    def _sequence(self) -> Node:
        nodes: list[Node] = []
        while self._ahead() not in {"", "|", ")"}:
            node = self._atom()
            if node is not None:
                nodes.append(self._repeated(node))
        return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))

    def _atom(self) -> Node | None:
        """Return the next thing that may be repeated, None after a flag."""
        if self._quantifier() is not None:
            self._refuse("a repeat of nothing", r"Put a \ before it for the character.")
        char, start = self._ahead(), self._at
        self._at += 1
        if char == "(":
            return self._group(start)
        if char in {"^", "$"}:
            return Edge(char)
        if char == ".":
            return Chars(ANY)
        if char == "[":
            return Chars(self._class(start))
        return self._single(self._escape(start) if char == "\\" else char, start)

    def _single(self, escaped: str | CharSet | Edge, start: int) -> Node:
        if escaped == "\n":
            self._lack("a line break", _ONE_LINE, start)
        if isinstance(escaped, Edge):
            return escaped
        if isinstance(escaped, CharSet):
            return Chars(self._folded(escaped))
        return Chars(self._folded(one(escaped)), escaped)

    def _folded(self, chars: CharSet) -> CharSet:
        return chars.folded() if self._ignores_case else chars

    def _group(self, start: int) -> Node | None:
        for opening, what in _NO_GROUP.items():
            if self._pattern.startswith(opening, start):
                self._lack(what, _AROUND if "look" in what else _GROUPS, start)
        ignores_case = self._ignores_case
        if self._takes("?"):
            if self._takes("P<") or self._takes("<"):
                self._name(start)
            elif not self._takes(":") and self._flags(start):
                return None
        self._depth += 1
        if self._depth > _MOST_DEEP:
            self._refuse(f"more than {_MOST_DEEP} groups within each other", _GROUPS, start)
        node = self._choice()
        self._depth -= 1
        self._ignores_case = ignores_case
        if not self._takes(")"):
            self._refuse("a ( that is not closed", r"Write \( for the character.", start)
        return Sequence((node,)) if isinstance(node, Edge) else node  # it may be repeated

    def _name(self, start: int) -> None:
        stop = self._pattern.find(">", self._at)
        if not self._pattern[self._at : max(stop, self._at)].isidentifier():
            self._refuse("a group without a name", _GROUPS, start)
        self._at = stop + 1

    def _flags(self, start: int) -> bool:
        """Take flags; return whether they are for all that follows, not for a group of theirs."""
        is_on = True
        while not (ends := self._takes(")")) and not self._takes(":"):
            flag = self._ahead()
            if flag == "i":
                self._ignores_case = is_on
            elif flag == "-" and is_on:
                is_on = False
            elif flag == "s":
                self._lack("the flag s", _ONE_LINE, start)
            elif flag != "m" or not is_on:
                self._refuse("an unknown group or flag", f"{_GROUPS} A flag is (?i).", start)
            self._at += 1
        return ends

    def _repeated(self, node: Node) -> Node:
        start, quantifier = self._at, self._quantifier()
        if quantifier is None:
            return node
        if isinstance(node, Edge):
            self._refuse("a repeat of nothing", "Repeat a character or a group.", start)
        least, most, self._at = quantifier
        is_lazy = self._takes("?")
        if not is_lazy and self._ahead() == "+":
            self._lack("a possessive repeat", "Leave out the second +.", start)
        if self._quantifier() is not None:
            self._refuse("a repeat of a repeat", "Put the first one into a group.", start)
        if most is not None and least > most:
            self._refuse("a repeat that ends before it starts", "Write {2,5}, not {5,2}.", start)
        if node == Sequence(()):
            return node
        if most != 1 and can_be_empty(node):
            # Engines do not agree how often.
            hint = "Let what is repeated need a character: (a+)* in place of (a*)*."
            self._refuse("a repeat of what needs no character", hint, start)
        return Repeat(node=node, least=least, most=most, is_lazy=is_lazy)

    def _quantifier(self) -> tuple[int, int | None, int] | None:
        """Return the bounds of the quantifier that comes next, and where it ends."""
        char = self._ahead()
        if char in {"*", "+", "?"}:
            return int(char == "+"), 1 if char == "?" else None, self._at + 1
        stop = self._pattern.find("}", self._at)
        if char != "{" or stop < 0:
            return None
        least, comma, most = self._pattern[self._at + 1 : stop].partition(",")
        if not (least or most) or not _DIGITS.issuperset(least + most):
            return None  # a brace like any other
        if not comma:
            most = least
        return int(least or 0), int(most) if most else None, stop + 1

    def _class(self, start: int) -> CharSet:
        is_negated, is_first = self._takes("^"), True
        ranges: list[tuple[int, int]] = []
        categories: set[str] = set()
        others: list[Part] = []
        while is_first or not self._takes("]"):
            is_first = False
            low = high = self._member(start)
            if isinstance(low, CharSet):
                for part in low.parts:
                    if part.is_negated:
                        others.append(part)
                    else:
                        ranges.extend(part.ranges)
                        categories |= part.categories
                continue
            if self._ahead() == "-" and self._ahead(1) not in {"", "]"}:
                self._at += 1
                high = self._member(start)
            if isinstance(high, CharSet) or high < low:
                self._refuse("a range that does not ascend", r"Write [a-z], or \- for a -.", start)
            ranges.append((ord(low), ord(high)))
        chars = self._folded(charset(ranges, categories, others))
        return chars.negated() if is_negated else chars

    def _member(self, start: int) -> str | CharSet:
        """Return the next character or set of a class that begins at `start`."""
        char, at = self._ahead(), self._at
        if not char:
            self._refuse("a [ that is not closed", r"Write \[ for the character.", start)
        if char == "[" and self._ahead(1) == ":" and ":]" in self._pattern[at:]:
            self._lack("a POSIX class", r"Write \w, \d, \s, \p{L} or a range.", at)
        self._at += 1
        escaped = self._escape(at) if char == "\\" else char
        if isinstance(escaped, Edge):
            self._refuse("a word border in a class", r"Put \b outside of the brackets.", at)
        return escaped

    def _escape(self, start: int) -> str | CharSet | Edge:
        char = self._ahead()
        self._at += 1
        if char in {"b", "B"}:
            return Edge(char)
        if char in {"p", "P"}:
            return self._category(start, is_negated=char == "P")
        if char in _HEX_DIGITS:
            return self._code(start, _HEX_DIGITS[char])
        if chars := _CLASSES.get(char.lower()):
            return chars if char.islower() else chars.negated()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _NO_ESCAPE:
            self._lack(*_NO_ESCAPE[char], start)
        if not char:
            self._refuse("a backslash at its end", r"Write \\ for the character.", start)
        if char in _DIGITS:
            self._lack("a backreference", _AROUND, start)
        if char.isascii() and char.isalpha():
            self._lack(f"the escape \\{char}", "Leave out the backslash.", start)
        return char

    def _category(self, start: int, *, is_negated: bool) -> CharSet:
        name = self._ahead()
        self._at += 1
        if name == "{":
            name = self._braced(start, _PROPERTIES)
            if name.startswith("^"):
                name, is_negated = name[1:], not is_negated
        if name not in CATEGORIES:
            self._lack("that property", _PROPERTIES, start)
        chars = charset((), (name,))
        return chars.negated() if is_negated else chars

    def _code(self, start: int, digits: int) -> str:
        hint = r"Write \x41, \u0041 or \x{41}."
        if self._takes("{"):
            code = self._braced(start, hint)
        else:
            code = self._pattern[self._at : self._at + digits]
            self._at += digits
            if len(code) < digits:
                code = ""
        if not code or not _HEX.issuperset(code) or len(code) > 8 or int(code, 16) > LAST_CODE:
            self._refuse("a character's number that is none", hint, start)
        return chr(int(code, 16))

    def _braced(self, start: int, hint: str) -> str:
        stop = self._pattern.find("}", self._at)
        if stop < 0:
            self._refuse("a { that is not closed", hint, start)
        text = self._pattern[self._at : stop]
        self._at = stop + 1
        return text

    def _ahead(self, chars: int = 0) -> str:
        at = self._at + chars
        return self._pattern[at : at + 1]

    def _takes(self, text: str) -> bool:
        is_next = self._pattern.startswith(text, self._at)
        self._at += len(text) * is_next
        return is_next

    def _lack(self, what: str, hint: str, at: int) -> NoReturn:
        self._refuse(what, hint, at, ", which is not supported here")

    def _refuse(self, what: str, hint: str, at: int | None = None, why: str = "") -> NoReturn:
        at = self._at if at is None else at
        message = f"{_named(self._pattern)} has {what} at character {at + 1}{why}."
        raise InvalidArgumentError(message, hint)


def _named(pattern: str) -> str:
    return f"The regular expression {shown(pattern)}"
