"""The offloader: measures a result, and banks what is too large to show."""

import sys
from collections.abc import Iterable

from ..bank import Bank, Stream, is_name, work_on
from ..content import Encoding, digest_of, encode, weigh
from ..errors import CoatcheckError, InvalidArgumentError, UnencodableValueError
from ..records import OWN_TOOLS, Artifact, Envelope, Limits
from ._call import current_call
from ._shown import (
    fitted,
    is_smaller,
    must_be_kept,
    readable,
    unencodable,
    unkept,
    unkept_stream,
)

_SURELY_SMALLER_BYTES = 4_096
"""A stream is read up to here before it is banked: of less, an envelope may not be smaller."""


class Offloader:
    """Shows results as a model should see them.

    Args:
        bank: Where large results are kept.
        limits: When a result is offloaded.
        reader: The read tool that the model was given, None where it has none.
        own: Names of tools whose replies are bounded already; None is all of ours, and `reader`.
    """

    def __init__(
        self, bank: Bank, limits: Limits, reader: str | None, own: Iterable[str] | None
    ) -> None:
        self._bank = bank
        self._limits = limits
        self._reader = reader
        bounded = {*OWN_TOOLS, reader} - {None} if own is None else own
        self._never: frozenset[str | None] = frozenset({*limits.never, *bounded})

    async def offload(
        self,
        value: object,
        tool: str | None,
        call_id: str | None = None,
        *,
        limit_bytes: int,
        preview_chars: int | None = None,
        is_error: bool = False,
    ) -> object:
        """Return what to show of a result, which is banked first where it must be."""
        stream = Stream.of(value, is_result=True)
        if stream is not None:

            async def show() -> object:
                return await self._show_stream(
                    stream,
                    tool,
                    call_id,
                    limit_bytes=limit_bytes,
                    preview_chars=preview_chars,
                    is_error=is_error,
                )

            return await stream.run(show)
        decided = self.decide(value, tool, limit_bytes)
        if not isinstance(decided, Encoding):
            return decided
        return await self.keep(
            value,
            decided,
            tool,
            call_id,
            limit_bytes=limit_bytes,
            preview_chars=preview_chars,
            is_error=is_error,
        )

    async def _show_stream(
        self,
        stream: Stream,
        tool: str | None,
        call_id: str | None,
        *,
        limit_bytes: int,
        preview_chars: int | None,
        is_error: bool,
    ) -> object:
        """Return what to show of a stream: a short one itself, else its envelope.

        Raises:
            Exception: What the tool's iterator raised.
        """
        least_bytes = limit_bytes and max(limit_bytes, _SURELY_SMALLER_BYTES)
        try:
            if not await stream.begins(sys.maxsize if tool in self._never else least_bytes):
                return await self.offload(
                    stream.value(),
                    tool,
                    call_id,
                    limit_bytes=limit_bytes,
                    preview_chars=preview_chars,
                    is_error=is_error,
                )
            artifact = await self._banked(
                stream, tool, call_id, preview_chars=preview_chars, is_error=is_error
            )
        except Exception as error:
            if error is stream.failure and not stream.is_unencodable:
                raise  # the tool's own
            if isinstance(error, UnencodableValueError) and stream.first_items:
                shown = unencodable(stream.first_items, error)
                if not isinstance(shown, Encoding):
                    return shown
                return await self.keep(
                    stream.first_items,
                    shown,
                    tool,
                    call_id,
                    limit_bytes=limit_bytes,
                    preview_chars=preview_chars,
                    is_error=is_error,
                )
            _log_loss(tool, error)
            if error is not stream.failure:
                await stream.drain()
            return unkept_stream(stream.encoding)
        envelope = Envelope.of(artifact, reader=self._reader, is_error=is_error)
        return fitted(envelope, stream.encoding, artifact.length_chars) if limit_bytes else envelope

    def decide(
        self, value: object, tool: str | None, limit_bytes: int, *, owned: bool = False
    ) -> object:
        """Return what to show of a result, or its `Encoding` where it must be kept first."""
        if isinstance(value, Artifact):
            return Envelope.of(value, reader=self._reader)
        if isinstance(value, Envelope):
            return value
        if tool in self._never:
            return readable(value)
        try:
            encoding = weigh(value, limit_bytes, owned=owned)
        except UnencodableValueError as error:
            return unencodable(value, error)
        if encoding is None:
            return value
        return encoding if must_be_kept(value, encoding, limit_bytes) else readable(value)

    async def offload_part(
        self,
        part: object,
        tool: str | None,
        *,
        limit_bytes: int,
        content_type: str | None,
        ttl_seconds: float | None,
        keyed: bool,
        is_error: bool,
    ) -> object:
        """Return what to show of one part of a result: see `Mirror.offload_part`."""
        decided = self.decide(part, tool, limit_bytes)
        if not isinstance(decided, Encoding):
            return decided
        encoding = decided if content_type is None else _typed(decided, content_type)
        key = None
        if keyed:
            digest = await work_on(encoding.size_hint, _payload_digest, encoding)
            key = f"{tool}\n{digest}"
        return await self.keep(
            part,
            encoding,
            tool,
            limit_bytes=limit_bytes,
            is_error=is_error,
            key=key,
            ttl_seconds=ttl_seconds,
        )

    async def keep(
        self,
        value: object,
        encoding: Encoding,
        tool: str | None,
        call_id: str | None = None,
        *,
        limit_bytes: int,
        preview_chars: int | None = None,
        is_error: bool = False,
        key: str | None = None,
        ttl_seconds: float | None = None,
    ) -> object:
        """Bank a result and return its envelope; the result itself where that is not smaller."""
        try:
            artifact = await self._banked(
                encoding,
                tool,
                call_id,
                preview_chars=preview_chars,
                is_error=is_error,
                key=key,
                ttl_seconds=ttl_seconds,
            )
        except Exception as error:  # noqa: BLE001 - else the tool's result would be lost with it
            _log_loss(tool, error)
            return readable(unkept(value))
        envelope = Envelope.of(artifact, reader=self._reader, is_error=is_error)
        if not limit_bytes:
            return envelope
        envelope = fitted(envelope, encoding, artifact.length_chars)
        return envelope if is_smaller(envelope) else readable(value)

    async def _banked(
        self,
        value: Encoding | Stream,
        tool: str | None,
        call_id: str | None,
        *,
        preview_chars: int | None,
        is_error: bool,
        key: str | None = None,
        ttl_seconds: float | None = None,
    ) -> Artifact:
        shown_chars = self._limits.preview_chars if preview_chars is None else preview_chars
        name = None if call_id is None else f"{tool or 'tool'}_{call_id}"
        call = current_call()
        if call_id is not None:
            key = f"{tool}\n{call_id}"
        elif key is None and call is not None:
            key = f"{tool}\n{call.key}"
        return await self._bank.put(
            value,
            name=name if name is not None and is_name(name) else None,
            kind="tool-output",
            key=key,
            ttl_seconds=ttl_seconds,
            preview_chars=shown_chars,
            shown_chars=shown_chars,
            tool=tool,
            is_error=is_error,
        )


def _typed(encoding: Encoding, content_type: str) -> Encoding:
    """Return a part as what the tool calls it; as what it looks like where it cannot be that."""
    if encoding.form not in {"text", "bytes"}:
        return encoding
    typed = encode(encoding.value, content_type)
    try:
        typed.check()
    except InvalidArgumentError:
        return encoding
    return typed


def _payload_digest(encoding: Encoding) -> str:
    """Return the digest of a payload, without the index that a whole pass would make."""
    if isinstance(encoding.value, str):
        return digest_of(encoding.value.encode("utf-8", "surrogatepass"))
    return digest_of(encoding.whole())


def _log_loss(tool: str | None, error: Exception) -> None:
    import logging  # a sixth of what the core takes to import, for what seldom happens

    logging.getLogger("coatcheck.mirror").warning(
        "a result of %s was not kept: %s",
        tool or "a tool",
        error,
        exc_info=not isinstance(error, CoatcheckError),
    )
