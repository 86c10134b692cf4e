"""Plain tools that remember what they were given, for the runs of `AdapterSuite`."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import BaseModel

from ..mirror import Verbatim

Row = dict[str, int]

MARK = "70000037"
"""Stands in what `rows` and `log` return, where no preview and no glimpse shows it."""

IMAGE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de000000"
    "0c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
"""A PNG of one pixel."""


class Order(BaseModel):
    """A parameter that is a model of pydantic."""

    number: int
    lines: list[Row]


def made_rows(n: int) -> list[Row]:
    """Return `n` rows, from 40 on with `MARK` among them."""
    return [{"id": 70_000_000 + number, "price": number} for number in range(n)]


def made_log(lines: int) -> str:
    """Return a text, from 40 lines on with `MARK` in it."""
    return "".join(f"line {70_000_000 + number} of a long log\n" for number in range(lines))


@dataclass(slots=True)
class Tools:
    """Plain typed functions, sync and async; each keeps what it was given."""

    calls: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])

    def given(self, tool: str) -> list[object]:
        """Return what a tool was called with, in order."""
        return [given for name, given in self.calls if name == tool]

    @property
    def rows(self) -> Callable[..., object]:
        """The tool ``rows(n)``."""

        def rows(n: int) -> list[Row]:
            """Return rows.

            Args:
                n: How many.
            """
            self.calls.append(("rows", n))
            return made_rows(n)

        return rows

    @property
    def rows_later(self) -> Callable[..., object]:
        """The tool ``rows_later(n)``, async."""

        async def rows_later(n: int) -> list[Row]:
            """Return rows.

            Args:
                n: How many.
            """
            self.calls.append(("rows_later", n))
            return made_rows(n)

        return rows_later

    @property
    def log(self) -> Callable[..., object]:
        """The tool ``log(lines)``."""

        def log(lines: int) -> str:
            """Return a log.

            Args:
                lines: How many.
            """
            self.calls.append(("log", lines))
            return made_log(lines)

        return log

    @property
    def total(self) -> Callable[..., object]:
        """The tool ``total(items, scale)``."""

        def total(items: list[Row], scale: int = 1) -> Row:
            """Return the sum of prices.

            Args:
                items: Rows with a price.
                scale: Multiplies the sum.
            """
            self.calls.append(("total", items))
            return {"total": scale * sum(item["price"] for item in items)}

        return total

    @property
    def total_later(self) -> Callable[..., object]:
        """The tool ``total_later(items)``, async."""

        async def total_later(items: list[Row]) -> Row:
            """Return the sum of prices.

            Args:
                items: Rows with a price.
            """
            self.calls.append(("total_later", items))
            return {"total": sum(item["price"] for item in items)}

        return total_later

    @property
    def add(self) -> Callable[..., object]:
        """The tool ``add(numbers)``."""

        def add(numbers: list[int]) -> int:
            """Return the sum of numbers.

            Args:
                numbers: Integers.
            """
            self.calls.append(("add", numbers))
            return sum(numbers)

        return add

    @property
    def merge(self) -> Callable[..., object]:
        """The tool ``merge(parts)``."""

        def merge(parts: list[list[Row]]) -> int:
            """Return how many rows there are in all.

            Args:
                parts: Lists of rows.
            """
            self.calls.append(("merge", parts))
            return sum(len(part) for part in parts)

        return merge

    @property
    def keep(self) -> Callable[..., object]:
        """The tool ``keep(note, items)``, whose first parameter is `Verbatim`."""

        def keep(note: Verbatim[str], items: list[Row]) -> str:
            """Keep a note on rows.

            Args:
                note: Any text.
                items: What it is on.
            """
            self.calls.append(("keep", (note, items)))
            return "kept"

        return keep

    @property
    def length(self) -> Callable[..., object]:
        """The tool ``length(text)``."""

        def length(text: str) -> int:
            """Return how many characters a text has.

            Args:
                text: Any text.
            """
            self.calls.append(("length", text))
            return len(text)

        return length

    @property
    def price(self) -> Callable[..., object]:
        """The tool ``price(order)``, whose parameter is a pydantic model."""

        def price(order: Order) -> int:
            """Return the price of an order.

            Args:
                order: Its number and lines.
            """
            self.calls.append(("price", order))
            return sum(line["price"] for line in order.lines)

        return price

    @property
    def note(self) -> Callable[..., object]:
        """The tool ``note(text)``, whose result is small."""

        def note(text: str) -> str:
            """Note a text.

            Args:
                text: What to note.
            """
            self.calls.append(("note", text))
            return f"noted: {text}"

        return note
