"""What bytes mean: encoding, index, pages, search, previews and glimpses. Pure, without I/O."""

from ._arrays import is_array, read_only
from ._binary_rows import binary_page, has_binary_rows
from ._content_type import check_content_type, names_text, type_of_name
from ._encoding import Encoding, decode, digest_of, encode, encoded_size, weigh
from ._frames import as_live, is_live_class
from ._glimpse import glimpse, host_glimpse
from ._index import Index
from ._json import dumps, has_surrogates, loads
from ._page import PagePlan, plan_page
from ._partial import MissingRangeError, PartialPayload
from ._preview import head_chars, preview, shown_preview, visible
from ._search import Search
from ._stream import PIECE_BYTES, Items, StreamEncoding
from ._tabular import is_tabular, plain_rows, text_bound
from ._tokens import clip_tokens, estimate_tokens

__all__ = [
    "PIECE_BYTES",
    "Encoding",
    "Index",
    "Items",
    "MissingRangeError",
    "PagePlan",
    "PartialPayload",
    "Search",
    "StreamEncoding",
    "as_live",
    "binary_page",
    "check_content_type",
    "clip_tokens",
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
    "is_array",
    "is_live_class",
    "is_tabular",
    "loads",
    "names_text",
    "plain_rows",
    "plan_page",
    "preview",
    "read_only",
    "shown_preview",
    "text_bound",
    "type_of_name",
    "visible",
    "weigh",
]
