"""Mirrored tools: pointers in, envelopes out, and the tool in between runs unchanged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from ..bank import PLAIN_TYPES, Bank, BlockingBank, bank_of
from ..content import Encoding, loads
from ..errors import InvalidArgumentError
from ..records import Limits
from ._declared import Inspected, as_json, as_schema, leave_verbatim
from ._handles import BackgroundTool
from ._mirrored import MirroredTool
from ._noted import note_result, note_results, note_turn
from ._offloader import Offloader
from ._parameters import Parameters
from ._schema import schema_at, widened
from ._slots import Argument, Slot
from ._turn import ToolResult, fit_turn


class Mirror:
    """What adapters use: resolves pointers among arguments, and offloads large results.

    Args:
        bank: Where results are kept, and pointers are looked up.
        limits: When a result is offloaded; None takes the bank's.
        inject: Values for parameters of these types, which the model does not see; None: the bank.
        reader: The read tool that the model was given, None where it has none.
        own: Names of our tools that the model was given; None is all there are, and the reader.
    """

    def __init__(
        self,
        bank: Bank | BlockingBank,
        limits: Limits | None = None,
        *,
        inject: Mapping[type, object] | None = None,
        reader: str | None = "retrieve_context",
        own: Iterable[str] | None = None,
    ) -> None:
        bank = bank_of(bank)
        self.bank = bank
        self.limits = limits or bank.limits
        self._inject: Mapping[type, object] = {Bank: bank} if inject is None else inject
        self._offloader = Offloader(bank, self.limits, reader, own)
        # No function is ours; but one of the reader's name is what envelopes name.
        self._of_functions = Offloader(bank, self.limits, reader, filter(None, [reader]))

    async def resolve(
        self, arguments: Mapping[str, object] | str, schema: Mapping[str, Any] | None = None
    ) -> dict[str, object]:
        """Return a call's arguments with what each pointer stands for in its place.

        Args:
            arguments: By name, or as the JSON text a model wrote. Not changed.
            schema: The tool's JSON schema: a place declared as text gets the payload's
                text, one declared as anything else the payload parsed.

        Raises:
            InvalidArgumentError: The text is no JSON object.
            InvalidPointerError: What follows the ``#`` of a pointer is no selector.
            UnknownPointerError, ExpiredPointerError: Nothing stands behind a pointer.
            NothingSelectedError, InvalidQueryError, DeadlineError, StoreError: As `Bank.get`.
        """
        return (await self.inspect(arguments, schema)).arguments

    async def inspect(
        self,
        arguments: Mapping[str, object] | str,
        schema: Mapping[str, Any] | None = None,
        *,
        fits: Callable[[Mapping[str, object]], bool] | None = None,
        leaves_unknown: bool = False,
    ) -> Inspected:
        """Return what `resolve` does, and the pointers that were among the arguments.

        Args:
            arguments: By name, or as the JSON text a model wrote. Not changed.
            schema: The tool's JSON schema.
            fits: Of a tool that only a JSON message reaches: whether arguments are what its schema
                says. Then a frame or an array becomes the list of its rows, bytes that are no
                text base64; and where text and structure may stand, a text that holds a structure
                becomes that, if it fits.
            leaves_unknown: Whether a pointer that stands for nothing here is left as it is: the
                tool may know it.

        Raises:
            CoatcheckError: As `resolve`.
        """
        given = _parsed_arguments(arguments) if isinstance(arguments, str) else dict(arguments)
        argument, root = Argument(given), schema or {}
        leave_verbatim(argument, root)
        await argument.fetch(self.bank, leaves_unknown=leaves_unknown)
        pointers = tuple(dict.fromkeys(slot.pointer for slot in argument.slots))

        def reading(slot: Slot, *, prefers_structure: bool = False) -> object:
            node = schema_at(root, slot.path, root)
            found = slot.found if fits is None else as_json(slot.found, node, root)
            return as_schema(
                found,
                node,
                root,
                content_type=slot.content_type,
                prefers_structure=prefers_structure,
            )

        preferring = partial(reading, prefers_structure=True)
        if fits is None or not fits(cast("dict[str, object]", argument.fill(preferring))):
            argument.fill(reading)
        return Inspected(cast("dict[str, object]", argument.value), pointers)

    async def offload(
        self,
        value: object,
        tool: str | None = None,
        call_id: str | None = None,
        *,
        is_error: bool = False,
        given: Iterable[object] = (),
    ) -> object:
        """Return a result as the model should see it: itself, or an `Envelope`.

        A result that cannot be kept is never replaced by a pointer: it passes whole up to
        200,000 characters, above that in part with a notice. What our own tools reply is
        bounded, and passes as it is.

        Args:
            value: What the tool returned.
            tool: Its name, for per-tool limits, and for `Artifact.tool`.
            call_id: Banks a replay of the same call to the same pointer, and names the
                artifact ``<tool>_<call id>``.
            is_error: Whether the value is the text of a failure; the envelope says so.
            given: The arguments of the call, of which the journal keeps the pointers.
        """
        shown = await self._offloaded(value, tool, call_id, is_error=is_error)
        if (journal := self.bank.journal) is not None:
            note_result(journal, self.bank, tool, shown, given=given, is_error=is_error)
        return shown

    async def _offloaded(
        self, value: object, tool: str | None, call_id: str | None, *, is_error: bool
    ) -> object:
        limit_bytes = self.limits.inline_limit(tool)
        if type(value) not in PLAIN_TYPES:
            return await self._offloader.offload(
                value, tool, call_id, limit_bytes=limit_bytes, is_error=is_error
            )
        # Most results are small, and nothing has to be waited for.
        decided = self._offloader.decide(value, tool, limit_bytes)
        if not isinstance(decided, Encoding):
            return decided
        return await self._offloader.keep(
            value, decided, tool, call_id, limit_bytes=limit_bytes, is_error=is_error
        )

    async def offload_part(
        self,
        part: object,
        tool: str | None = None,
        *,
        limit_bytes: int | None = None,
        content_type: str | None = None,
        ttl_seconds: float | None = None,
        keyed: bool = True,
        is_error: bool = False,
    ) -> object:
        """Return one of several parts of a result as the model should see it.

        As `offload`, for hosts that know no id of a call: the same part of the same tool is
        banked to the same pointer. The journal is not told; `note` tells it of the whole call.

        Args:
            part: Text, bytes or plain JSON values.
            tool: The name of the tool.
            limit_bytes: From which size on it is offloaded, 0 always; None as in the limits.
            content_type: What the tool calls it, taken where the part may be that.
            ttl_seconds: How long the artifact lives; None until it is deleted.
            keyed: Whether the same part has the same pointer; else each has one of its own.
            is_error: Whether it is part of a failure; the envelope says so.
        """
        if limit_bytes is None:
            limit_bytes = self.limits.inline_limit(tool)
        return await self._offloader.offload_part(
            part,
            tool,
            limit_bytes=limit_bytes,
            content_type=content_type,
            ttl_seconds=ttl_seconds,
            keyed=keyed,
            is_error=is_error,
        )

    def note(
        self,
        tool: str | None,
        shown: Sequence[object],
        *,
        given: Iterable[object] = (),
        is_error: bool = False,
    ) -> None:
        """Tell the journal, where there is one, what the parts of one result were shown as."""
        journal = self.bank.journal
        if journal is not None:
            note_results(journal, self.bank, tool, shown, given=given, is_error=is_error)

    async def offload_turn(self, results: Iterable[tuple[Any, ...]]) -> list[object]:
        """Return the results of one turn as the model should see them, in their order.

        Each as `offload` would show it. Where they take more than `Limits.turn_bytes`
        together, the largest are offloaded too, one after another, until the rest fits. Of
        two as large, the one whose tool and call id come first in order goes first, else the
        one that stands first: which finished first makes no difference. What a limit's
        `never` names, and whatever an envelope would not make smaller, stays.

        Args:
            results: Each a `ToolResult`, or a tuple of the same: a value, then where known
                its tool, its call id, and whether it is the text of a failure.
        """
        each = [ToolResult(*result) for result in results]
        shown = [
            one.value
            if one.is_shown
            else await self._offloaded(one.value, one.tool, one.call_id, is_error=one.is_error)
            for one in each
        ]
        if self.limits.turn_bytes is not None:
            await fit_turn(self._offloader, each, shown, self.limits.turn_bytes)
        if self.bank.journal is not None:
            note_turn(self.bank.journal, self.bank, each, shown)
        return shown

    def schema(self, json_schema: Mapping[str, Any], *, in_defs: bool = False) -> dict[str, Any]:
        """Return a tool's JSON schema, its array and object parameters open to pointers.

        Args:
            json_schema: Of the arguments, an object; it is not changed.
            in_defs: Whether what a pointer is stands once under ``$defs``, and not with each.
        """
        return widened(json_schema, in_defs=in_defs)

    def wrap(
        self,
        fn: Callable[..., object],
        *,
        inline_bytes: int | None = None,
        preview_chars: int | None = None,
        to_model_output: Callable[[Any], object] | None = None,
        owned: bool = False,
    ) -> Callable[..., Any]:
        """Return `fn` mirrored; see `mirror`."""
        return MirroredTool(
            fn,
            Parameters(fn, self._inject),
            self.bank,
            self._of_functions,
            limits=self.limits,
            inline_bytes=inline_bytes,
            preview_chars=preview_chars,
            to_model_output=to_model_output,
            owned=owned,
        ).mirrored()

    def background(
        self,
        fn: Callable[..., object],
        *,
        ttl_seconds: float = 600,
        lease_seconds: float = 60,
        inline_bytes: int | None = None,
        preview_chars: int | None = None,
        to_model_output: Callable[[Any], object] | None = None,
        owned: bool = False,
    ) -> Callable[..., Any]:
        """Return `fn` mirrored, its work in the background; see `background`."""
        return BackgroundTool(
            fn,
            Parameters(fn, self._inject),
            self.bank,
            self._of_functions,
            limits=self.limits,
            ttl_seconds=ttl_seconds,
            lease_seconds=lease_seconds,
            inline_bytes=inline_bytes,
            preview_chars=preview_chars,
            to_model_output=to_model_output,
            owned=owned,
        ).mirrored()


def _parsed_arguments(text: str) -> dict[str, object]:
    given: object = {}
    try:
        if text.strip():
            given = loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidArgumentError(
            "the arguments are not a JSON object", "Pass the arguments by name, as one object."
        )
    return cast("dict[str, object]", given)
