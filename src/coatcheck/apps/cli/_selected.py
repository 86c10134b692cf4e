"""What a selector picks of an artifact, with the facts that it would have if it was banked."""

from dataclasses import replace

from ...bank import BlockingBank
from ...records import Artifact, Pointer, is_pointer


def selected(bank: BlockingBank, pointer: str, artifact: Artifact) -> Artifact:
    """Return what is behind a pointer: `artifact`, or the part of it that a selector picks.

    A part has type, size, preview and glimpse of its own. Who made it, and when, stays.

    Args:
        bank: Where it lies.
        pointer: Or an id or a name, which have no selector.
        artifact: What `bank.find` says of it.
    """
    selector = Pointer.parse(pointer).selector if is_pointer(pointer) else None
    if selector is None:
        return artifact
    with BlockingBank("memory:", limits=bank.bank.limits) as aside:
        part = aside.put(bank.get(pointer))
    return replace(
        artifact,
        pointer=f"{artifact.pointer}#{selector}",
        content_type=part.content_type,
        size_bytes=part.size_bytes,
        length_chars=part.length_chars,
        row_count=part.row_count,
        preview=part.preview,
        shown_preview=part.shown_preview,
        glimpse=part.glimpse,
        digest=part.digest,
    )
