"""Artifacts as tables of a database: which file it reads of each, and how."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from xxhash import xxh3_128

from ..content import (
    Rows,
    Selector,
    SqlEngine,
    decode,
    is_tabular_form,
    names_json,
    outline,
    parse_block,
    plain_rows,
    rows_span,
)
from ..content.sql import (
    CsvSource,
    JsonSource,
    LineTable,
    Loaded,
    UnreadableError,
    Written,
    WrittenFrame,
    has_header,
    list_paths,
    load_csv,
    load_frame_file,
    load_json,
    refused,
    write_frame,
    write_values,
)
from ..errors import CoatcheckError, DamagedPayloadError, NothingSelectedError, shown
from ..stores import SupportsPath
from ._databases import Prepared, Wanted
from ._reader import Reader, damaged
from ._record import Record
from ._rows import GoneError
from ._select import Selections
from ._shared import Shared
from ._spool import (
    BLOCK_ROWS,
    PIECE_BYTES,
    SAMPLE_BYTES,
    Spool,
    as_arrays,
    first_records,
    is_simple,
)
from ._threads import in_daemon_thread, work_on

_MOST_ANEW_BYTES = 256 * 1024 * 1024
"""Most of a payload that is parsed here, where the database cannot read it."""
_LONGEST_NAME = 199


class Tables:
    """Prepares artifacts to be loaded.

    Args:
        shared: What all scopes of the bank share.
        reader: Reads payloads.
        selections: Reads what selectors pick.
    """

    def __init__(self, shared: Shared, reader: Reader, selections: Selections) -> None:
        self._shared = shared
        store = shared.store
        self._paths = store if isinstance(store, SupportsPath) else None
        self._reader = reader
        self._selections = selections

    async def prepare(
        self, record: Record, *, selector: Selector | None, wanted: Wanted, anew: bool
    ) -> Prepared:
        """Return an artifact, or what a selector picks of it, as a table.

        Args:
            record: Of the artifact.
            selector: Picks a part.
            wanted: The columns that are needed.
            anew: Its rows are parsed here and written anew, as the database cannot read them.

        Raises:
            InvalidQueryError: It has no rows.
            BinaryPayloadError: It is neither text nor a table.
            GoneError: Its payload is gone.
            CoatcheckError: As reading it, or its selection, raises.
        """
        spool = Spool()
        try:
            if selector is not None:
                return await self._selected(record, selector, spool)
            return await self._whole(record, wanted, spool, anew=anew)
        except FileNotFoundError:  # deleted meanwhile, elsewhere
            spool.close()
            raise GoneError from None
        except BaseException:
            spool.close()
            raise

    async def _whole(self, record: Record, wanted: Wanted, spool: Spool, *, anew: bool) -> Prepared:
        artifact, index, rows = record.artifact, record.index, record.index.rows
        if is_tabular_form(record.form):
            return await self._of_frame(record, wanted, spool)
        is_json = rows is not None and rows.format in {"json", "ndjson"}
        if rows is not None and is_json and rows.count and not anew:
            return await self._of_json(record, rows, spool)
        if rows is not None and not is_json:
            if not rows.columns:  # nothing says what it would be a table of
                return await self._of_tree(record, spool)
            return await self._of_csv(record, rows, spool, anew=anew)
        if index.length_chars is None:
            self._reader.view(record).check_text()
        if is_json or record.form == "json" or names_json(artifact.content_type):
            return await self._of_tree(record, spool)
        return await self._of_lines(record, spool)

    async def _selected(self, record: Record, selector: Selector, spool: Spool) -> Prepared:
        found = await self._selections.value(record, selector=selector)
        if found is None:
            raise GoneError
        value, size_bytes = found
        if isinstance(value, str):
            path = await in_daemon_thread(
                lambda: spool.write(value.encode("utf-8", "surrogatepass"))
            )
            return _lines(path, size_bytes, spool)
        pointer = f"{record.artifact.pointer}#{selector.text}"
        return await self._of_value(value, pointer, selector.text, spool)

    async def _of_tree(self, record: Record, spool: Spool) -> Prepared:
        """Take JSON that is parsed here."""
        if record.index.size_bytes > _MOST_ANEW_BYTES:
            raise refused(
                "it is too large to be read as a table as it is",
                "Its rows are no list of objects whose keys are plain names.",
            )
        try:
            value = await self._selections.tree(record)
        except NothingSelectedError:  # it is no JSON, whatever its type says
            return await self._of_lines(record, spool)
        return await self._of_value(value, record.artifact.pointer, "", spool)

    async def _of_value(self, value: object, pointer: str, selector: str, spool: Spool) -> Prepared:
        if not isinstance(value, list):
            raise _no_rows(value, pointer, selector)
        values = cast("list[object]", value)

        def write() -> tuple[Written, str]:
            written = write_values(values)
            return written, spool.write(written.payload)

        written, path = await in_daemon_thread(write)
        source = JsonSource(
            path=path,
            form="json",
            size_bytes=len(written.payload),
            count=written.count,
            sample=written.sample,
            is_all=written.is_all,
            keys=written.keys or None,
        )
        return _json(source, spool, written.renamed)

    async def _of_json(self, record: Record, rows: Rows, spool: Spool) -> Prepared:
        sample, is_all = await self._sample(record, rows)
        # What a host's glimpse tells is for models.
        has_own_glimpse = self._shared.glimpse_of(record.artifact.kind) is not None
        source = JsonSource(
            path=await self._path(record, spool),
            form=rows.format,
            size_bytes=record.index.size_bytes,
            count=rows.count,
            sample=sample,
            is_all=is_all,
            keys=None if has_own_glimpse else _known_keys(record, rows, sample),
        )
        return _json(source, spool, {})

    async def _of_csv(self, record: Record, rows: Rows, spool: Spool, *, anew: bool) -> Prepared:
        path = await self._path(record, spool)

        def look() -> CsvSource:
            source = CsvSource(
                path=path,
                form=rows.format,
                columns=rows.columns,
                has_header=has_header(record.artifact.content_type),
                size_bytes=record.index.size_bytes,
                count=rows.count,
                sample=first_records(path, rows, record.index.size_bytes),
            )
            return source if not anew and is_simple(path) else as_arrays(source, rows, spool)

        return _csv(await in_daemon_thread(look), spool)

    async def _of_frame(self, record: Record, wanted: Wanted, spool: Spool) -> Prepared:
        payload = await self._reader.payload(record)
        if payload is None:
            raise GoneError

        def write() -> tuple[WrittenFrame | None, str]:
            frame = None
            with damaged(record.artifact.pointer):
                if record.form != "npy":
                    frame = write_frame(payload, record.form, wanted)
            return frame, "" if frame is None else spool.write(frame.payload)

        frame, path = await in_daemon_thread(write)
        if frame is None:
            value = await in_daemon_thread(lambda: plain_rows(decode(payload, record.form)))
            return await self._of_value(value, record.artifact.pointer, "", spool)
        return Prepared(
            lambda engine, table, _: load_frame_file(engine, path, frame, table),
            record.index.size_bytes,
            frame.renamed,
            spool.folder,
        )

    async def _of_lines(self, record: Record, spool: Spool) -> Prepared:
        return _lines(await self._path(record, spool), record.index.size_bytes, spool)

    async def _sample(self, record: Record, rows: Rows) -> tuple[Sequence[object], bool]:
        """Return rows from the start, the middle and the end, and whether these are all."""
        size_bytes, blocks = record.index.size_bytes, len(rows.starts)
        found: list[object] = []
        for block in sorted({0, blocks // 2, blocks - 1}):
            start, stop = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, rows.count)
            first, end = rows_span(rows, size_bytes, start, stop)
            if end - first > SAMPLE_BYTES:
                continue
            piece = await self._reader.fetched(record, first, end)
            with damaged(record.artifact.pointer):
                found += parse_block(rows, piece, block, block + 1)
        return found, len(found) == rows.count

    async def _path(self, record: Record, spool: Spool) -> str:
        """Return a file that holds a payload: the store's own, else a copy."""
        if self._paths is not None:
            path = await self._paths.path(record.payload_key)
            if path is None:
                raise GoneError
            return spool.link(path)
        digest, size_bytes = xxh3_128(), record.index.size_bytes
        with spool.open() as file:
            for start in range(0, size_bytes, PIECE_BYTES):
                stop = min(start + PIECE_BYTES, size_bytes)
                piece = await self._reader.fetched(record, start, stop)
                digest.update(piece)
                await work_on(len(piece), file.write, piece)
        if f"xxh3:{digest.hexdigest()}" != record.artifact.digest:
            raise DamagedPayloadError(record.artifact.pointer)
        return str(file.name)


def _json(source: JsonSource, spool: Spool, renamed: Mapping[str, str]) -> Prepared:
    def load(engine: SqlEngine, table: str, wanted: Wanted) -> Loaded:
        return load_json(engine, source, table, wanted)

    return Prepared(load, source.size_bytes, renamed, spool.folder)


def _csv(source: CsvSource, spool: Spool) -> Prepared:
    def load(engine: SqlEngine, table: str, wanted: Wanted) -> Loaded:
        return load_csv(engine, source, table, wanted)

    return Prepared(load, source.size_bytes, source.renamed, spool.folder)


def _lines(path: str, size_bytes: int, spool: Spool) -> Prepared:
    def load(engine: SqlEngine, table: str, _: Wanted) -> Loaded:
        lines = LineTable(engine, table)
        try:
            with Path(path).open("rb", buffering=0) as file:
                while piece := file.read(PIECE_BYTES):
                    lines.feed(piece)
        except FileNotFoundError:  # deleted meanwhile, elsewhere
            raise UnreadableError from None
        return lines.end()

    return Prepared(load, size_bytes, {}, spool.folder)


def _known_keys(record: Record, rows: Rows, sample: Sequence[object]) -> Sequence[str] | None:
    """Return the keys of all rows as the glimpse tells them; None where it may not tell all."""
    glimpse = record.artifact.glimpse
    facts: Mapping[str, object] = {} if glimpse is None else glimpse.facts
    columns = facts.get("columns")
    # `head` is what glimpses said that were stored when a stream's first rows were its sample.
    is_partial = facts.get("partial") or facts.get("head")
    if facts.get("format") != "table" or not isinstance(columns, list) or is_partial:
        return None
    if facts.get("sampled") and rows.format != "json":
        return None  # only of some rows were they looked at
    names = [str(column.get("name")) for column in cast("list[Mapping[str, object]]", columns)]
    seen = {
        key for row in sample if isinstance(row, dict) for key in cast("dict[str, object]", row)
    }
    is_exact = (
        facts.get("rows") == rows.count
        and facts.get("columnCount") == len(names) == len(set(names))
        and seen.issubset(names)
        and all(len(name) < _LONGEST_NAME and name.isprintable() for name in names)
    )
    return names if is_exact else None


def _no_rows(value: object, pointer: str, selector: str) -> CoatcheckError:
    """Return the error of JSON that is no list: it says where lists are."""
    lists = list_paths(value)
    reason = f"{shown(pointer)} is {outline(value)}, and no list of rows"
    if not lists:
        return refused(reason, "Ask in JSONPath ($.name) or JMESPath (name).")
    whole = pointer.partition("#")[0]
    if selector[:1] not in {"", "/"}:
        return refused(reason, "Select one of its lists.")
    above = selector
    named = ", ".join(f"#{above}{path} ({count:,} rows)" for path, count in lists)
    return refused(reason, f'Its lists: {named}. Ask one of them: "{whole}#{above}{lists[0][0]}".')
