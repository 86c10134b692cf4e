"""CSV and TSV: where records lie, the names of columns, and records as values. All text.

Source: RFC 4180. Read as spreadsheets write them: lines end by CRLF, LF or CR, blank lines do
not count, a quote opens a field only at its start, and records need not be of one length.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from io import StringIO
from itertools import zip_longest
from typing import TypeVar

from ._index import BLOCK_ROWS, count_newlines, skip_lines
from ._rows import RowPattern, RowScanner

T = TypeVar("T")

_SEMICOLONS = "csv;"
DELIMITERS = {"csv": ",", "tsv": "\t", _SEMICOLONS: ";"}
"""By format. With semicolons CSV is written where numbers have a decimal comma."""
_EXTRA = "extra"
_LONGEST_HEADER_BYTES = 65_536
_BLANK = re.compile(rb"\n\r?\n")
_ENDS = b"\r\n"


class CsvRows(RowScanner):
    """Finds the records of CSV or TSV.

    Args:
        form: ``csv`` or ``tsv``. Of CSV the first two records tell whether it has semicolons.
        header: Whether the first record names the columns. If not, they are named by number.
        is_guess: Nobody said that it is a table: then it is none once the delimiters of a
            piece are not as many as its records and columns ask for.
    """

    def __init__(self, form: str, *, header: bool = True, is_guess: bool = False) -> None:
        super().__init__()
        self.format = form
        self._has_header = header
        self._is_guess = is_guess
        self._delimiter = DELIMITERS[form].encode()
        self._pattern = csv_pattern(form)
        self._is_named = False
        self._is_settled = form != "csv"

    def _scan(self, text: bytes, *, final: bool) -> int:
        start = 0
        if not self._is_settled and not self._settle(text, final=final):
            return 0
        if not self._is_named:
            header_stop = self._pattern.skip(text, 1, 0)[1] or (len(text) if final else 0)
            if max(header_stop, 0 if header_stop else len(text)) > _LONGEST_HEADER_BYTES:
                raise ValueError("no header")
            if not header_stop:
                return 0
            start = self._name(text[:header_stop])
        stop = self._records(text, start)
        if final and text[stop:].strip(_ENDS):
            # The last record has no end, or a quote that nothing closes.
            self._passed(1, stop)
            if self._is_guess:
                self._check(text[stop:], 1)
            stop = len(text)
        return stop

    def _settle(self, text: bytes, *, final: bool) -> bool:
        """Find the delimiter; return whether the first records are there to tell."""
        head = text[:_LONGEST_HEADER_BYTES]
        is_whole = final and head == text
        waits = not final and head == text
        line, newline, _ = head.lstrip(_ENDS).partition(b"\n")
        if not newline and waits:
            return False
        if b";" in line and b"," not in line:
            passed, stop = csv_pattern(_SEMICOLONS).skip(head, 2, 0)
            if passed < 2 and waits:
                return False
            head = head if is_whole else head[:stop]
            records = parse_csv(_decode(head), _SEMICOLONS)[:2]
            if len(records) == 2 and len(records[0]) == len(records[1]):
                self.format = _SEMICOLONS
                self._delimiter = DELIMITERS[_SEMICOLONS].encode()
                self._pattern = csv_pattern(_SEMICOLONS)
        self._is_settled = True
        return True

    def _name(self, record: bytes) -> int:
        """Name the columns after the first record, and return how many bytes are no row."""
        self._is_named = True
        records = parse_csv(_decode(record), self.format)
        fields = records[0] if records else []
        self.columns = unique_names(fields if self._has_header else [""] * len(fields))
        return len(record) if self._has_header else 0

    def _records(self, text: bytes, start: int) -> int:
        start += len(text) - start - len(text[start:].lstrip(_ENDS))
        stop = max(start, text.rfind(b"\n") + 1)
        before = self._count
        if _is_plain(text[start:stop]):
            self._pass_lines(text[start:stop], start)
        else:
            stop = start
        # Also behind the last newline, where lines may end by CR.
        stop = self._pass(self._pattern, text, stop)
        if self._is_guess:
            self._check(text[start:stop], self._count - before)
        return stop

    def _check(self, text: bytes, records: int) -> None:
        """Raise where so many records of our columns can hardly be what `text` holds."""
        wanted = records * (len(self.columns) - 1)
        found = text.count(self._delimiter)
        if b'"' in text:
            # Those inside quotes come on top; to tell them takes a look at each record.
            found = min(found, wanted)
            _, stop = self._pattern.skip(text, 1, 0)
            first = parse_csv(_decode(text[: stop or len(text)]), self.format)
            if first and len(first[0]) != len(self.columns):
                found = -1
        if found != wanted:
            raise ValueError("no table")

    def _pass_lines(self, lines: bytes, start: int) -> None:
        """Count records that are lines."""
        left, line = count_newlines(lines), 0
        while left:
            passed = min(left, BLOCK_ROWS - self._count % BLOCK_ROWS)
            self._passed(passed, start + line)
            left -= passed
            line = skip_lines(lines, passed, line) if left else line


@cache
def csv_pattern(form: str) -> RowPattern:
    """Return the pattern of one record with its end, and blank lines around it."""
    delimiter = DELIMITERS[form].encode()
    # A quote inside a field that did not start with one is a character as any other. No group
    # is possessive: before Python 3.11.5 such a one could fail where it should match.
    # Where one is cut, no pair of quotes in it may be taken for its end.
    quoted = rb'(?<![^%b\r\n])"[^"]*+(?:""[^"]*+)*"(?!")|(?<=[^%b\r\n])"' % (delimiter, delimiter)
    other = rb'[^"\r\n]*+'
    record = rb"%b(?:(?:%b)%b)*" % (other, quoted, other)
    return RowPattern(rb"[\r\n]*+(?=[^\r\n])%b[\r\n]++" % record)


def parse_csv(text: str, form: str) -> list[list[str]]:
    r"""Return the records of `text`, each a list of fields, without blank lines.

    >>> parse_csv('1,"a ""b""\n"\r\n\r\n2', "csv")
    [['1', 'a "b"\n'], ['2']]
    """
    return _taken(list, text, form)


def parse_csv_objects(text: str, form: str, columns: tuple[str, ...]) -> list[dict[str, object]]:
    """Return each record of `text` by column, as `as_object` does."""
    count = len(columns)

    def objects(records: Iterable[list[str]]) -> list[dict[str, object]]:
        return [
            dict(zip(columns, record))  # noqa: B905 - of one length; most records are, so at once
            if len(record) == count
            else as_object(record, columns)
            for record in records
        ]

    return _taken(objects, text, form)


def parse_csv_column(text: str, form: str, column: int) -> list[str | None]:
    """Return one field of each record of `text`, None of a record that is too short.

    Args:
        text: Whole records.
        form: ``csv`` or ``tsv``.
        column: From 0.
    """

    def fields(records: Iterable[list[str]]) -> list[str | None]:
        return [record[column] for record in records]

    try:
        return _taken(fields, text, form, column + 1)
    except IndexError:
        records = parse_csv(text, form)
        return [record[column] if column < len(record) else None for record in records]


def _taken(take: Callable[[Iterable[list[str]]], T], text: str, form: str, splits: int = -1) -> T:
    """Return what is made of the records of `text`, each of which may be let go at once.

    To keep all of them first would take twice as long: it is new memory for each.

    Args:
        take: Makes it. It may be called twice.
        text: Whole records.
        form: ``csv`` or ``tsv``.
        splits: After so many delimiters a record need not be split.
    """
    delimiter = DELIMITERS[form]
    if '"' not in text:
        plain = text.replace("\r\n", "\n")
        if "\r" not in plain:
            return take(line.split(delimiter, splits) for line in plain.split("\n") if line)
    try:
        return take(filter(None, csv.reader(StringIO(text, newline=""), delimiter=delimiter)))
    except csv.Error:  # a field over 131,072 characters; its limit is the whole process's
        return take(_parse_long(text, form))


def _is_plain(lines: bytes) -> bool:
    """Return whether each line is one record, and ends with a newline."""
    return (
        b'"' not in lines
        and (b"\r" not in lines or lines.count(b"\r") == lines.count(b"\r\n"))
        and not _BLANK.search(lines)
    )


def _parse_long(text: str, form: str) -> list[list[str]]:
    records: list[list[str]] = []
    record: list[str] = []
    for field in _field(form).finditer(text):
        quoted, rest, plain, end = field.groups()
        if not record and quoted is None and not plain and end != DELIMITERS[form]:
            continue
        record.append(plain if quoted is None else quoted.replace('""', '"') + rest)
        if end != DELIMITERS[form]:
            records.append(record)
            record = []
    return records


@cache
def _field(form: str) -> re.Pattern[str]:
    other = f"[^{DELIMITERS[form]}\\r\\n]*+"
    quoted = f'"((?:[^"]++|"")*)"?({other})'
    return re.compile(f"(?:{quoted}|({other}))({DELIMITERS[form]}|\\r\\n?|\\n|\\Z)")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each column: its own where it is the first of that name.

    >>> unique_names(["id", "", "id", "id_2"])
    ('id', 'column_2', 'id_3', 'id_2')
    """
    own = set(names)
    taken: set[str] = set()
    unique: list[str] = []
    for number, name in enumerate(names, 1):
        free = name
        if not name or name in taken:
            stem, tail = (name, number) if name else ("column", number)
            free = f"{stem}_{tail}"
            while free in taken or free in own:
                tail += 1
                free = f"{stem}_{tail}"
        taken.add(free)
        unique.append(free)
    return tuple(unique)


@lru_cache(8)  # else made anew for each record that is too long
def extra_name(columns: tuple[str, ...]) -> str:
    """Return the key under which a record's fields behind the last column are listed."""
    return unique_names([*columns, _EXTRA])[-1]


def as_object(fields: Sequence[str], columns: Sequence[str]) -> dict[str, object]:
    """Return a record by column: None where it is short; what is over is a list, last.

    >>> as_object(["1"], ["a", "b"]), as_object(["1", "2", "3"], ["a"])
    ({'a': '1', 'b': None}, {'a': '1', 'extra': ['2', '3']})
    """
    named: dict[str, object] = dict(zip_longest(columns, fields[: len(columns)]))
    if len(fields) > len(columns):
        named[extra_name(tuple(columns))] = list(fields[len(columns) :])
    return named
