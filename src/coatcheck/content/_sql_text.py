"""Lines of a text, from its pieces into a table."""

import re

from ._sql_engine import SqlEngine, quoted
from ._sql_types import Loaded

_SURROGATE = re.compile("[\ud800-\udfff]")
_COLUMNS = {"line_number": "BIGINT", "line": "VARCHAR"}


class LineTable:
    """A table of lines that is filled piece by piece, so that no second copy is in memory.

    Args:
        engine: The database.
        table: The name of the table.
    """

    def __init__(self, engine: SqlEngine, table: str) -> None:
        self._engine = engine
        self._table = table
        self._count = 0
        self._rest: list[bytes] = []
        engine.run(f"CREATE TABLE {quoted(table)} (line_number BIGINT, line VARCHAR)")

    def feed(self, piece: bytes) -> None:
        """Add the lines that end in the next piece of UTF-8."""
        head, newline, tail = piece.rpartition(b"\n")
        if not newline:
            self._rest.append(piece)
            return
        self._add(b"".join((*self._rest, head)))
        self._rest = [tail]

    def end(self) -> Loaded:
        """Add the last line, where it has no end, and return the table."""
        rest = b"".join(self._rest)
        if rest:
            self._add(rest)
        return Loaded(table=self._table, columns=_COLUMNS, is_whole=True)

    def _add(self, lines: bytes) -> None:
        text = _SURROGATE.sub("\ufffd", lines.decode("utf-8", "surrogatepass"))
        self._engine.run(
            f"INSERT INTO {quoted(self._table)} "
            # Both at once: to unnest a long list alone takes time in proportion to its square.
            f"SELECT {self._count} + generate_subscripts(lines, 1), unnest(lines) "
            "FROM (SELECT string_split($1, chr(10)) AS lines)",
            [text],
        )
        self._count += text.count("\n") + 1
