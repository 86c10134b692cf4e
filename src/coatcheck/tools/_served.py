"""What a server of artifacts over MCP is asked: the address ``art://{id}``, and whose they are."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from ..bank import Bank
from ..content import visible
from ..errors import InvalidArgumentError, UnknownPointerError, shown
from ..records import Page, dataclass, is_id

RESOURCE_TEMPLATE = "art://{id}{?offset,limit}"
RESOURCE_DESCRIPTION = (
    "What a pointer stands for: offset and limit count characters, of binary bytes."
)
META_SCOPE = "coatcheck/scope"
"""Key in the `_meta` of a request, by which a client says whose artifacts it is about."""

_WHOLE_BYTES = 32 * 1024 * 1024
_LONGEST_SCOPE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What was read: text, or bytes of what is none."""

    content: str | bytes
    content_type: str
    page: Page | None
    """The window that was asked for; None of what was read whole."""


async def read_artifact_resource(bank: Bank, uri: str) -> Contents | None:
    """Return what lies at an address, None of one that is no artifact's.

    Raises:
        UnknownPointerError, ExpiredPointerError: There is none.
        InvalidArgumentError: It is over 32 MiB and asked for whole, or the window is none.
        StoreError: The store failed.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "art":
        return None
    # A pointer is an address too, without the slashes.
    id_, rest = (parts.netloc, parts.path) if parts.netloc else (parts.path, "")
    if not is_id(id_) or rest not in {"", "/"} or parts.fragment:
        raise UnknownPointerError(uri)
    window = _window(parts.query)
    artifact = await bank.find(id_)
    if artifact is None:
        await bank.payload(id_)  # which raises, and tells unknown from expired
        raise UnknownPointerError(uri)
    is_text = artifact.length_chars is not None
    page = None
    content: str | bytes
    if window:
        unit = "chars" if is_text else "bytes"
        page = await bank.read(
            artifact.pointer, window.get("offset", 0), window.get("limit"), unit=unit
        )
        content = page.content
    elif artifact.size_bytes > _WHOLE_BYTES:
        raise InvalidArgumentError(
            f"The artifact has {artifact.size_bytes:,} bytes; up to {_WHOLE_BYTES:,} are sent"
            " whole.",
            f"Read it in windows: art://{artifact.id}?offset=0&limit=200000.",
        )
    else:
        payload = await bank.payload(artifact.pointer)
        content = payload.decode("utf-8", "surrogatepass") if is_text else payload
    return Contents(
        content=visible(content) if isinstance(content, str) else content,
        content_type=artifact.content_type,
        page=page,
    )


def stated_scope(meta: Mapping[str, object] | None) -> str | None:
    """Return the scope that the `_meta` of a request states, None of one that states none.

    Raises:
        InvalidArgumentError: It is no text of 1 to 200 characters.
    """
    said = None if meta is None else meta.get(META_SCOPE)
    if said is None:
        return None
    if not isinstance(said, str) or not 0 < len(said) <= _LONGEST_SCOPE:
        raise InvalidArgumentError(
            f"{META_SCOPE} is a text of 1 to {_LONGEST_SCOPE} characters, got {shown(said)}.",
            "Give the name of a run, session or user, or leave it out.",
        )
    return said


def _window(query: str) -> dict[str, int]:
    """Return the offset and limit that an address asks for."""
    window: dict[str, int] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in {"offset", "limit"} or not (value.isascii() and value.isdigit()):
            raise InvalidArgumentError(
                f"{shown(f'{name}={value}')} is no part of a window.",
                "Ask for art://ID?offset=0&limit=50000: whole numbers from 0 and 1 on.",
            )
        window[name] = int(value[:20])
    return window
