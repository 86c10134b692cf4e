"""What bytes mean: encoding, index, pages, search, previews and glimpses. Pure, without I/O."""

from ._encoding import Encoding, decode, digest_of, encode, encoded_size, weigh
from ._glimpse import glimpse
from ._index import Index
from ._json import dumps, has_surrogates, loads
from ._page import PagePlan, plan_page
from ._preview import head_chars, preview, shown_preview, visible
from ._search import Search
from ._tokens import clip_tokens, estimate_tokens

__all__ = [
    "Encoding",
    "Index",
    "PagePlan",
    "Search",
    "clip_tokens",
    "decode",
    "digest_of",
    "dumps",
    "encode",
    "encoded_size",
    "estimate_tokens",
    "glimpse",
    "has_surrogates",
    "head_chars",
    "loads",
    "plan_page",
    "preview",
    "shown_preview",
    "visible",
    "weigh",
]
