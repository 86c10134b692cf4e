"""The offloader: measures a result, and banks what is too large to show."""

from ..bank import Bank, is_name
from ..content import Encoding, weigh
from ..errors import CoatcheckError, UnencodableValueError
from ..records import OWN_TOOLS, Artifact, Envelope, Limits
from ._shown import fitted, is_smaller, must_be_kept, readable, unencodable, unkept


class Offloader:
    """Shows results as a model should see them.

    Args:
        bank: Where large results are kept.
        limits: When a result is offloaded.
        reader: The read tool that the model was given, None where it has none.
    """

    def __init__(self, bank: Bank, limits: Limits, reader: str | None) -> None:
        self._bank = bank
        self._limits = limits
        self._reader = reader
        self._never: frozenset[str | None] = frozenset({*limits.never, *OWN_TOOLS}) | (
            set() if reader is None else {reader}
        )

    def decide(self, value: object, tool: str | None, limit_bytes: int) -> object:
        """Return what to show of a result, or its `Encoding` where it must be kept first."""
        if isinstance(value, Artifact):
            return Envelope.of(value, reader=self._reader)
        if isinstance(value, Envelope):
            return value
        if tool in self._never:
            return readable(value)
        try:
            encoding = weigh(value, limit_bytes)
        except UnencodableValueError as error:
            return unencodable(value, error)
        if encoding is None:
            return value
        return encoding if must_be_kept(value, encoding, limit_bytes) else readable(value)

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
    ) -> object:
        """Bank a result and return its envelope; the result itself where that is not smaller."""
        shown_chars = self._limits.preview_chars if preview_chars is None else preview_chars
        name = None if call_id is None else f"{tool or 'tool'}_{call_id}"
        try:
            artifact = await self._bank.put(
                encoding,
                name=name if name is not None and is_name(name) else None,
                kind="tool-output",
                key=None if call_id is None else f"{tool}\n{call_id}",
                preview_chars=shown_chars,
                shown_chars=shown_chars,
                tool=tool,
                is_error=is_error,
            )
        except Exception as error:  # noqa: BLE001 - else the tool's result would be lost with it
            _log_loss(tool, error)
            return readable(unkept(value))
        envelope = Envelope.of(artifact, reader=self._reader, is_error=is_error)
        if not limit_bytes:
            return envelope
        envelope = fitted(envelope, encoding, artifact.length_chars)
        return envelope if is_smaller(envelope) else readable(value)


def _log_loss(tool: str | None, error: Exception) -> None:
    import logging  # a sixth of what the core takes to import, for what seldom happens

    logging.getLogger("coatcheck.mirror").warning(
        "a result of %s was not kept: %s",
        tool or "a tool",
        error,
        exc_info=not isinstance(error, CoatcheckError),
    )
