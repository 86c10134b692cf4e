"""What bytes mean: encoding, index, pages, search, previews and glimpses. Pure, without I/O."""

from ._arrays import is_array, read_only
from ._binary_rows import binary_page, has_binary_rows, take_rows
from ._budget import Budget
from ._content_type import check_content_type, names_json, names_text, type_of_name
from ._encoding import Encoding, decode, digest_of, encode, encoded_size, weigh
from ._frames import as_live, is_live_class
from ._glimpse import glimpse, host_glimpse
from ._index import Index, Rows
from ._jmespath import compile_jmespath
from ._json import dumps, has_surrogates, loads
from ._json_pieces import PieceWriter, TooLargeError
from ._jsonpath import compile_jsonpath
from ._misspelt import misspelt
from ._outline import index_outline, outline
from ._own import own
from ._page import PagePlan, plan_page
from ._parsed import (
    is_parsed_as,
    least_tree_bytes,
    parse_block,
    parse_payload,
    parse_rows,
    rows_of_text,
    rows_span,
    tree_bytes,
)
from ._partial import MissingRangeError, PartialPayload
from ._pick import nothing_at, pick, slice_rows
from ._preview import head_chars, preview, shown_preview, visible
from ._row_paths import EachRow, pick_of_row, single_row
from ._search import search_for
from ._section import PieceIndexer, Section, chars_section, lines_section, section_page
from ._selector import Selector, parse_selector
from ._sql_engine import MEMORY_EXIT, WORKERS, EngineError, SqlAnswer, SqlEngine, SqlRows, sql_name
from ._stream import PIECE_BYTES, Items, StreamEncoding
from ._tabular import is_tabular, is_tabular_form, plain_rows, text_bound
from ._tokens import clip_tokens, estimate_tokens

__all__ = [
    "MEMORY_EXIT",
    "PIECE_BYTES",
    "WORKERS",
    "Budget",
    "EachRow",
    "Encoding",
    "EngineError",
    "Index",
    "Items",
    "MissingRangeError",
    "PagePlan",
    "PartialPayload",
    "PieceIndexer",
    "PieceWriter",
    "Rows",
    "Section",
    "Selector",
    "SqlAnswer",
    "SqlEngine",
    "SqlRows",
    "StreamEncoding",
    "TooLargeError",
    "as_live",
    "binary_page",
    "chars_section",
    "check_content_type",
    "clip_tokens",
    "compile_jmespath",
    "compile_jsonpath",
    "decode",
    "digest_of",
    "dumps",
    "encode",
    "encoded_size",
    "estimate_tokens",
    "glimpse",
    "has_binary_rows",
    "has_surrogates",
    "head_chars",
    "host_glimpse",
    "index_outline",
    "is_array",
    "is_live_class",
    "is_parsed_as",
    "is_tabular",
    "is_tabular_form",
    "least_tree_bytes",
    "lines_section",
    "loads",
    "misspelt",
    "names_json",
    "names_text",
    "nothing_at",
    "outline",
    "own",
    "parse_block",
    "parse_payload",
    "parse_rows",
    "parse_selector",
    "pick",
    "pick_of_row",
    "plain_rows",
    "plan_page",
    "preview",
    "read_only",
    "rows_of_text",
    "rows_span",
    "search_for",
    "section_page",
    "shown_preview",
    "single_row",
    "slice_rows",
    "sql_name",
    "take_rows",
    "text_bound",
    "tree_bytes",
    "type_of_name",
    "visible",
    "weigh",
]
