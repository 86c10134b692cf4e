"""Records of CSV and TSV, from a file into a table, each column of the type of its fields.

A column is BIGINT or DOUBLE where every field that is not empty is a number as the glimpse takes it
for one, BOOLEAN where each is true or false; in these what is empty is null. All else is text, and
what is empty is empty.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import orjson

from ..records import dataclass
from ._csv import DELIMITERS, extra_name, parse_csv
from ._sql_engine import EngineError, SqlEngine, literal, quoted
from ._sql_json import UnreadableError
from ._sql_names import column_names, wanted_keys
from ._sql_types import Loaded
from ._statistics import parsed

_SURROGATE = re.compile("[\ud800-\udfff]")
_INT = "[+-]?(0|[1-9][0-9]{0,17})"
_FLOAT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"
_DIGITS = "[+-]*[0-9]+"
_LONG = "[+-]?[0-9]{16,18}"
_NOT_FINITE = "('nan', 'inf', '-inf', '+inf', 'infinity', '-infinity', '+infinity')"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSource:
    """A file of records, and what is known of them."""

    path: str
    form: str
    """``csv`` or ``tsv``."""
    columns: Sequence[str]
    """The names in the header, each once."""
    has_header: bool
    size_bytes: int
    count: int
    sample: Sequence[Sequence[str]] = ()
    """Some records."""
    are_arrays: bool = False
    """Whether the file holds the records as one array of arrays, as JSON."""
    has_extra: bool = False
    """Whether some of these are longer than the header."""

    @property
    def headers(self) -> list[str]:
        """The columns, the one of what is behind the last column among them."""
        return [*self.columns, *([extra_name(tuple(self.columns))] if self.has_extra else ())]

    @property
    def renamed(self) -> dict[str, str]:
        """Names of columns by their headers, where the two differ."""
        names = column_names(self.headers)
        return {header: name for header, name in names.items() if header != name}


class CsvLook:
    """Looks whether a text is cut at each delimiter and each end of a line, and nowhere else."""

    def __init__(self) -> None:
        self.is_simple = True
        self._ends_in_return = False

    def feed(self, piece: bytes) -> None:
        """Look at the next piece."""
        if self._ends_in_return and not piece.startswith(b"\n"):
            self.is_simple = False
        self._ends_in_return = piece.endswith(b"\r")
        returns = piece.count(b"\r") - self._ends_in_return
        if b'"' in piece or b"\x00" in piece or returns != piece.count(b"\r\n"):
            self.is_simple = False


def dump_records(piece: bytes, form: str, width: int) -> tuple[bytes, bool]:
    """Return records as a JSON array of arrays, and whether one is longer than `width`."""
    text = _SURROGATE.sub("\ufffd", piece.decode("utf-8", "surrogatepass"))
    records = parse_csv(text, form)
    return orjson.dumps(records), any(len(record) > width for record in records)


def load_csv(
    engine: SqlEngine, source: CsvSource, table: str, wanted: Iterable[str] | None
) -> Loaded:
    """Load those columns that are wanted, all of them for None.

    Raises:
        UnreadableError: The engine does not find the records that are there.
        InvalidQueryError: All are wanted, and they are too many.
        EngineError: There is no time or memory for it.
    """
    headers = source.headers
    names = column_names(headers)
    chosen = wanted_keys(names, wanted, source.size_bytes)
    places = {names[header]: headers.index(header) for header in chosen}
    stage = f"{table}_stage"
    read = _arrays if source.are_arrays else _lines
    try:
        engine.run(f"CREATE TABLE {quoted(stage)} AS {read(source, places)}")
        ((count, extra),) = engine.run(f"SELECT count(*), bool_or(is_over) FROM {quoted(stage)}")
    except EngineError as error:
        raise (UnreadableError() if error.is_content else error) from None
    if count != source.count or extra:
        raise UnreadableError
    kinds = _kinds(engine, source, stage, places)
    cells = ", ".join(
        f"{_cell(kind, places[name])} AS {quoted(name)}" for name, kind in kinds.items()
    )
    engine.run(f"CREATE TABLE {quoted(table)} AS SELECT {cells} FROM {quoted(stage)}")
    engine.run(f"DROP TABLE {quoted(stage)}")
    is_whole = len(chosen) == len(headers)
    return Loaded(table=table, columns=kinds, is_whole=is_whole, known=list(names.values()))


def _lines(source: CsvSource, places: Mapping[str, int]) -> str:
    """Return what reads columns of text that is simple, and whether a record is too long."""
    width = len(source.columns)
    columns = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(width + 1))
    cells = ", ".join(f"c{at}" for at in places.values())
    return (
        f"SELECT {cells}, c{width} IS NOT NULL AS is_over "
        f"FROM read_csv({literal(source.path)}, columns = {{{columns}}}, auto_detect = false, "
        f"header = {str(source.has_header).lower()}, delim = {literal(DELIMITERS[source.form])}, "
        "quote = '', escape = '', comment = '', nullstr = chr(0), null_padding = true, "
        "strict_mode = false, compression = 'none', hive_partitioning = false)"
    )


def _arrays(source: CsvSource, places: Mapping[str, int]) -> str:
    """Return what reads columns of records that were written as arrays."""
    width = len(source.columns)
    cells = ", ".join(
        f"{f'fields[{at + 1}]' if at < width else f'fields[{at + 1}:]'} AS c{at}"
        for at in places.values()
    )
    return (
        f"SELECT {cells}, false AS is_over FROM read_json({literal(source.path)}, "
        "columns = {fields: 'VARCHAR[]'}, auto_detect = false, format = 'array', "
        "records = 'false', compression = 'uncompressed', hive_partitioning = false)"
    )


def _kinds(
    engine: SqlEngine, source: CsvSource, stage: str, places: Mapping[str, int]
) -> dict[str, str]:
    """Return the types of columns by all of their fields."""
    width = len(source.columns)
    kinds = {name: "VARCHAR" if at < width else "VARCHAR[]" for name, at in places.items()}
    # One field that is no number settles that all are text.
    open_names = [
        name for name, at in places.items() if at < width and not _is_text(source.sample, at)
    ]
    if not open_names:
        return kinds
    asked = ", ".join(_question(f"c{places[name]}") for name in open_names)
    row = engine.run(f"SELECT {asked} FROM {quoted(stage)}")[0]
    for at, name in enumerate(open_names):
        is_int, is_number, is_bool, has_long = row[4 * at : 4 * at + 4]
        if is_int:
            kinds[name] = "BIGINT"
        elif is_number and not has_long:
            kinds[name] = "DOUBLE"
        elif is_bool:
            kinds[name] = "BOOLEAN"
    return kinds


def _question(name: str) -> str:
    """Return what is asked of all fields that are not empty."""
    is_int = f"regexp_full_match({name}, '{_INT}')"
    is_name = f"regexp_full_match({name}, '{_DIGITS}') AND NOT {is_int}"
    is_number = (
        f"lower({name}) IN {_NOT_FINITE} OR "
        f"(regexp_full_match({name}, '{_FLOAT}') AND NOT ({is_name}))"
    )
    asked = (
        f"bool_and({is_int})",
        f"bool_and({is_number})",
        f"bool_and(lower({name}) IN ('true', 'false'))",
        f"bool_or(regexp_full_match({name}, '{_LONG}'))",
    )
    return ", ".join(f"{each} FILTER ({name} <> '')" for each in asked)


def _is_text(sample: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether some of the fields of a column show that it is text."""
    fields = {record[at] for record in sample if at < len(record) and record[at]}
    return bool(fields) and all(isinstance(value, str) for value in parsed(list(fields)))


def _cell(kind: str, at: int) -> str:
    return f"c{at}" if kind.startswith("VARCHAR") else f"CAST(nullif(c{at}, '') AS {kind})"
