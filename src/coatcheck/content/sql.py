"""SQL on payloads: what a statement may do, how payloads become tables, what runs them.

Apart from the rest of the package, and imported by its own name: only who queries needs it.
"""

from ._csv import parse_csv
from ._sql_csv import CsvLook, CsvSource, dump_records, load_csv
from ._sql_errors import engine_refusal
from ._sql_json import JsonSource, UnreadableError, load_json
from ._sql_lists import list_paths
from ._sql_names import check_names
from ._sql_statement import Statement, check_words, read_statement, refused
from ._sql_text import LineTable
from ._sql_types import Loaded
from ._sql_values import Written, WrittenFrame, load_frame_file, write_frame, write_values
from ._table import has_header

__all__ = [
    "CsvLook",
    "CsvSource",
    "JsonSource",
    "LineTable",
    "Loaded",
    "Statement",
    "UnreadableError",
    "Written",
    "WrittenFrame",
    "check_names",
    "check_words",
    "dump_records",
    "engine_refusal",
    "has_header",
    "list_paths",
    "load_csv",
    "load_frame_file",
    "load_json",
    "parse_csv",
    "read_statement",
    "refused",
    "write_frame",
    "write_values",
]
