"""The tree of a regular expression: its nodes, what they may match, and how they are written."""

from collections.abc import Callable, Mapping

from ..records import dataclass
from ._regex_sets import CharSet


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    chars: CharSet
    literal: str = ""
    """The character that was written, where the set is no more than its cases."""


@dataclass(frozen=True, slots=True)
class Edge:
    r"""A place between characters: ``^``, ``$``, ``b`` at a word's border, ``B`` at none.

    A line ends before ``\n`` or ``\r\n``.
    """

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; nothing where there are none."""

    nodes: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first of these that leads to a match."""

    nodes: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The same several times, as often as may be, or as seldom where it is lazy."""

    node: "Node"
    least: int
    most: int | None
    is_lazy: bool


Node = Chars | Edge | Sequence | Choice | Repeat


def can_be_empty(node: Node) -> bool:
    """Return whether it can match where there is no character."""
    match node:
        case Chars():
            return False
        case Edge():
            return True
        case Sequence(nodes):
            return all(map(can_be_empty, nodes))
        case Choice(nodes):
            return any(map(can_be_empty, nodes))
        case Repeat():
            return node.least == 0 or can_be_empty(node.node)


def has_borders(node: Node) -> bool:
    """Return whether words' borders are in it."""
    match node:
        case Chars():
            return False
        case Edge(kind):
            return kind in "bB"
        case Sequence(nodes) | Choice(nodes):
            return any(map(has_borders, nodes))
        case Repeat():
            return has_borders(node.node)


def write(node: Node, write_set: Callable[[CharSet], str], edges: Mapping[str, str]) -> str:
    """Write it for an engine, whose ways of writing sets and edges these are."""

    def written(node: Node) -> str:
        match node:
            case Chars(chars):
                return write_set(chars)
            case Edge(kind):
                return edges[kind]
            case Sequence(nodes):
                return "".join(map(written, nodes))
            case Choice(nodes):
                return f"(?:{'|'.join(map(written, nodes))})"
            case Repeat():
                inner = written(node.node)
                if not isinstance(node.node, Chars | Choice):
                    inner = f"(?:{inner})"
                most = "" if node.most is None else node.most
                return f"{inner}{{{node.least},{most}}}{'?' if node.is_lazy else ''}"

    return written(node)


def written_out(node: Node) -> int:
    """Return how many characters it stands for, repeats written out; each thing is one at least."""
    match node:
        case Chars() | Edge():
            return 1
        case Sequence(nodes) | Choice(nodes):
            return max(1, sum(map(written_out, nodes)))
        case Repeat():
            return written_out(node.node) * max(1, node.least if node.most is None else node.most)
