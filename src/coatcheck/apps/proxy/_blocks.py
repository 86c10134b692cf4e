"""Content blocks of a result as a model should see them, one by one."""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from ...content import encoded_size, loads
from ...errors import UnencodableValueError
from ...mirror import Mirror
from ...records import Envelope, Pointer, is_pointer, read_back
from ._twins import Twin, text_of

STRUCTURED = "structuredContent"

_MEDIA = ("image/", "audio/", "video/")
_ANY_TEXT = frozenset({"text/plain", "application/octet-stream", ""})
"""Content types that servers give to whatever they have: what it looks like says more."""
_LONGEST_ENVELOPE = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What holds for the results of one tool, for one caller."""

    mirror: Mirror
    tool: str
    limit_bytes: int
    """From this size on a text is offloaded, in UTF-8 bytes."""
    image_bytes: int | None
    """From this size of its base64 on an image is offloaded; None never."""
    ttl_seconds: float | None = None
    """How long an artifact lives, and then each has a pointer of its own."""
    links: bool = True
    """Whether a `resource_link` is added for each artifact."""


@dataclass(slots=True)
class Blocks:
    """The content blocks of one result, on their way to the model."""

    rule: Rule
    is_error: bool = field(kw_only=True)
    shown: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    by_block: dict[int, dict[str, object]] = field(default_factory=dict[int, dict[str, object]])
    """What each block became; none for those that went into one before them."""
    links: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    """One for each artifact; they stand behind all blocks."""
    artifacts: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    """What programs are told of each."""
    measured: list[object] = field(default_factory=list[object])
    """What each text was shown as, for the journal."""
    has_changed: bool = False

    async def add(self, blocks: Sequence[dict[str, object]], items: Twin | None) -> None:
        """Add all blocks of the result, those that are items of one list as one."""
        list_shown: object = None
        if items is not None and self._reaches_together(blocks, items):
            list_shown = await self._offloaded(items.value)
            if list_shown is items.value:
                items = None
        else:
            items = None
        for at, block in enumerate(blocks):
            if items is None or at not in items.blocks:
                shown = await self._shown(block)
                self.has_changed |= shown is not block
                self.by_block[at] = shown
                self.shown.append(shown)
            elif at == items.blocks[0]:
                self.measured.append(list_shown)
                self.shown.append(self._text_block(list_shown, {}))
                self.has_changed = True

    async def add_structured(self, value: object) -> bool:
        """Bank a structured content that nothing repeats; return whether it was replaced."""
        try:
            encoded_size(value)
        except UnencodableValueError:
            value = written(value)
        shown = await self._offloaded(value)
        if shown is value or not isinstance(shown, Envelope | str):
            return False
        self.measured.append(shown)
        self.shown.append(self._text_block(shown, {STRUCTURED: True}))
        self.has_changed = True
        return True

    def _reaches_together(self, blocks: Sequence[dict[str, object]], items: Twin) -> bool:
        texts = (str(blocks[at]["text"]) for at in items.blocks)
        return sum(encoded_size(text) for text in texts) >= self.rule.limit_bytes

    async def _shown(self, block: dict[str, object]) -> dict[str, object]:
        kind = block.get("type")
        if kind == "text":
            return await self._shown_text(block)
        if kind == "resource":
            return await self._shown_resource(block)
        if kind == "image":
            return await self._shown_image(block)
        return block

    async def _shown_text(self, block: dict[str, object]) -> dict[str, object]:
        text = text_of(block)
        if text is None or is_envelope(text):
            return block
        if text.isascii() and len(text) < self.rule.limit_bytes:  # the quick answer for most
            self.measured.append(text)
            return block
        shown = await self._offloaded(text)
        self.measured.append(shown)
        return block if shown is text else {**block, **self._text_block(shown, {})}

    async def _shown_resource(self, block: dict[str, object]) -> dict[str, object]:
        resource = block.get("resource")
        if not isinstance(resource, dict):
            return block
        facts = cast("dict[str, object]", resource)
        text, blob, told = facts.get("text"), facts.get("blob"), facts.get("mimeType")
        content_type = told if isinstance(told, str) else ""
        replaces = {key: facts[key] for key in ("uri", "mimeType") if key in facts}
        rest = {key: value for key, value in block.items() if key != "resource"}
        if isinstance(text, str):
            known = None if content_type in _ANY_TEXT else content_type
            shown = await self._offloaded(text, known)
            self.measured.append(shown)
            if isinstance(shown, Envelope):
                return {**rest, **self._text_block(shown, {"replaces": replaces})}
            return block if shown is text else {**block, "resource": {**facts, "text": shown}}
        if not isinstance(blob, str) or content_type.startswith(_MEDIA):
            return block
        shown = await self._offloaded_base64(blob, content_type or None, self.rule.limit_bytes)
        if shown is None:
            return block
        self.measured.append(shown)
        return {**rest, **self._text_block(shown, {"replaces": replaces})}

    async def _shown_image(self, block: dict[str, object]) -> dict[str, object]:
        coded, content_type = block.get("data"), block.get("mimeType")
        if self.rule.image_bytes is None or not isinstance(coded, str):
            return block
        if not isinstance(content_type, str) or not content_type.startswith("image/"):
            return block
        shown = await self._offloaded_base64(coded, content_type, self.rule.image_bytes)
        if shown is None or shown.content_type != content_type:
            return block  # it is no such image, and our own reader could not show it
        self.measured.append(shown)
        shown = replace(shown, note=read_back(shown.pointer))
        rest = {key: value for key, value in block.items() if key not in {"data", "mimeType"}}
        return {**rest, **self._text_block(shown, {"replaces": {"mimeType": content_type}})}

    async def _offloaded_base64(
        self, coded: str, content_type: str | None, limit_bytes: int
    ) -> Envelope | None:
        """Return the envelope of what is coded, None where it is small, or cannot be kept."""
        if len(coded) < limit_bytes:
            return None
        try:
            payload = b64decode(coded, validate=True)
        except ValueError:
            return None
        # It is large as a host shows it, where three bytes take four characters.
        shown = await self._offloaded(payload, content_type, min(limit_bytes, len(payload)))
        return shown if isinstance(shown, Envelope) else None

    async def _offloaded(
        self, value: object, content_type: str | None = None, limit_bytes: int | None = None
    ) -> object:
        rule = self.rule
        return await rule.mirror.offload_part(
            value,
            rule.tool,
            limit_bytes=rule.limit_bytes if limit_bytes is None else limit_bytes,
            content_type=content_type,
            ttl_seconds=rule.ttl_seconds,
            keyed=rule.ttl_seconds is None,
            is_error=self.is_error,
        )

    def _text_block(self, shown: object, facts: Mapping[str, object]) -> dict[str, object]:
        """Return a block of what is shown, and note what it points at."""
        if isinstance(shown, Envelope):
            uri = f"art://{Pointer.parse(shown.pointer).id}"
            artifact: dict[str, object] = {
                "block": len(self.shown),
                "pointer": shown.pointer,
                "uri": uri,
                "sizeBytes": shown.size_bytes,
            }
            link: dict[str, object] = {"type": "resource_link", "uri": uri, "name": shown.pointer}
            if shown.content_type is not None:
                artifact["contentType"] = link["mimeType"] = shown.content_type
            # For programs: what a model needs stands in the envelope, and would be paid for twice.
            link |= {"size": shown.size_bytes, "annotations": {"audience": ["user"]}}
            self.artifacts.append({**artifact, **facts})
            if self.rule.links:
                self.links.append(link)
        return {"type": "text", "text": str(shown)}


def written(value: object) -> str:
    """Return the JSON of what is nested deeper than we encode; nothing where Python fails too."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return ""


def is_envelope(text: str) -> bool:
    """Return whether a text is an envelope already: of a proxy further in, or a mirrored tool."""
    if not text.startswith('{"pointer":"') or len(text) > _LONGEST_ENVELOPE:
        return False
    try:
        wire = cast("dict[str, object]", loads(text.encode("utf-8", "surrogatepass")))
    except ValueError:
        return False
    return [*wire][:4] == ["pointer", "preview", "sizeBytes", "note"] and is_pointer(
        wire["pointer"]
    )
