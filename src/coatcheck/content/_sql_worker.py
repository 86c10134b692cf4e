"""The program that runs SQL, in a process of its own: started by the bank, one for each database.

It imports nothing of this package but the modules beside it that are its own, so that it starts
quickly. Whatever a statement does to memory or time, it does to this process, and that can be
ended: DuckDB's own limit does not cover what one function makes, nor can it be interrupted within
one.

Messages both ways are a length in four bytes, and JSON. A request is answered by lists of rows,
each one message, and then by one object.
"""

import json
import os
import select
import struct
import sys

import _duckdb

from ._sql_database import Database

_LENGTH = struct.Struct(">I")


def main() -> None:
    """Answer what is asked on the standard input, until that ends or nothing comes for a while."""
    idle_seconds = float(sys.argv[1])
    sys.set_int_max_str_digits(0)
    # Nothing of the host's is of use here.
    os.environ.clear()  # noqa: TID251
    database = Database(connect())
    while select.select([0], [], [], idle_seconds)[0]:
        request = _read()
        if request is None:
            break
        for message in database.answer(json.loads(request)):
            _write(message)
    os._exit(0)


def connect() -> _duckdb.DuckDBPyConnection:
    """Return a database in memory that loads no extensions and writes no files."""
    return _duckdb.connect(
        ":memory:",
        config={
            "threads": str(min(4, os.cpu_count() or 1)),
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "temp_directory": "",
            "max_temp_directory_size": "0B",
        },
    )


def _read() -> bytes | None:
    head = _read_bytes(_LENGTH.size)
    return None if head is None else _read_bytes(_LENGTH.unpack(head)[0])


def _read_bytes(size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(0, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(message: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        left = left[os.write(1, left) :]
