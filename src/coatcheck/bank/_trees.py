"""Payloads as plain values, parsed once: the smaller ones are remembered, within the cache."""

from collections import Counter
from collections.abc import Iterable
from typing import Self

from ..content import (
    Selector,
    index_outline,
    is_parsed_as,
    is_tabular_form,
    least_tree_bytes,
    parse_payload,
    tree_bytes,
)
from ..errors import (
    CoatcheckError,
    DamagedPayloadError,
    NothingSelectedError,
)
from ..records import Pointer, dataclass
from ._reader import Reader
from ._record import Record
from ._rows import GoneError
from ._shared import Shared
from ._threads import work_on

TREE_FORMS = frozenset({"json-pointer", "jsonpath"})
"""Selectors for which a payload is parsed."""

_CACHE_SHARE = 2
"""A tree takes at most a half of `Limits.cache_bytes`: what is read beside it should stay."""
_HEAD_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class Tree:
    """A payload as a plain value."""

    value: object
    is_shared: bool
    """Whether others read it too: then nobody may be handed a list or dict of it."""


class HeldTrees:
    """Parsed payloads that several selectors of one call pick from, kept until the last did.

    Args:
        ids: Of the artifacts that are parsed, once for each time.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._left = Counter(ids)
        self._trees: dict[str, Tree] = {}

    @classmethod
    def of(cls, pointers: Iterable[str], selectors: Iterable[Selector | None]) -> Self:
        """Return what will be held for pointers that have these selectors."""
        return cls(
            Pointer.parse(pointer).id
            for pointer, selector in zip(pointers, selectors, strict=True)
            if selector is not None and selector.form in TREE_FORMS
        )

    def get(self, record: Record) -> Tree | None:
        """Return the tree of a record, if it was parsed for this call."""
        return self._trees.get(record.payload_key)

    def leave(self, record: Record) -> bool:
        """Count one selector as answered; return whether none is left."""
        self._left[record.artifact.id] -= 1
        if self._left[record.artifact.id] > 0:
            return False
        self._trees.pop(record.payload_key, None)
        return True

    def take(self, record: Record, tree: Tree) -> Tree:
        """Return a tree as the one selector gets it for whom it was parsed."""
        if self.leave(record):
            return tree
        shared = Tree(tree.value, is_shared=True)
        self._trees[record.payload_key] = shared
        return shared


class Trees:
    """Parses payloads.

    Args:
        shared: Whose cache keeps the smaller trees.
        reader: Reads the payloads.
    """

    def __init__(self, shared: Shared, reader: Reader) -> None:
        self._shared = shared
        self._reader = reader
        self._limit_bytes = shared.limits.cache_bytes // _CACHE_SHARE

    async def tree(self, record: Record, held: HeldTrees | None = None) -> Tree:
        """Return a payload as `parse_payload` does.

        Args:
            record: Of the artifact.
            held: What was parsed for the same call.

        Raises:
            NothingSelectedError: It is text or bytes without a structure.
            DamagedPayloadError: It is not what was stored.
            GoneError: It is gone.
        """
        tree = None if held is None else held.get(record)
        tree = tree or self._kept(record) or await self._parsed(record)
        return tree if held is None else held.take(record, tree)

    def may_keep(self, record: Record) -> bool:
        """Return whether a tree is small enough to be remembered, as far as its index tells."""
        return least_tree_bytes(record.index) <= self._limit_bytes

    def _kept(self, record: Record) -> Tree | None:
        kept = self._shared.cache.get(f"{record.payload_key}#")
        return kept if isinstance(kept, Tree) else None

    async def _parsed(self, record: Record) -> Tree:
        artifact, index = record.artifact, record.index
        head = artifact.preview or await self._head(record)
        parsed_as = is_parsed_as(record.form, artifact.content_type, index, head)
        if parsed_as is None:
            raise nothing_in(record, "it is no JSON and no table")
        payload = await self._reader.payload(record)
        if payload is None:
            raise GoneError
        try:
            value = await work_on(len(payload), parse_payload, payload, parsed_as, index.rows)
        except CoatcheckError:
            raise
        except ValueError:
            if record.form == "json" or is_tabular_form(parsed_as):
                raise DamagedPayloadError(artifact.pointer) from None
            raise nothing_in(record, "it is not JSON") from None
        if not self.may_keep(record):
            return Tree(value, is_shared=False)
        size_bytes = tree_bytes(payload, parsed_as, value)
        if size_bytes > self._limit_bytes:
            return Tree(value, is_shared=False)
        tree = Tree(value, is_shared=True)
        self._shared.cache.put(f"{record.payload_key}#", tree, size_bytes)
        return tree

    async def _head(self, record: Record) -> str:
        """Return the beginning of a payload whose host asked for no preview of it."""
        piece = await self._reader.fetched(record, 0, min(_HEAD_BYTES, record.index.size_bytes))
        return piece.decode("utf-8", "replace")


def nothing_in(record: Record, reason: str, hint: str | None = None) -> NothingSelectedError:
    """Return the error of a selector that picks nothing.

    Args:
        record: Of the artifact.
        reason: Why, in one clause.
        hint: What the artifact has instead, None for what its index tells.
    """
    artifact = record.artifact
    hint = hint or f"It has {index_outline(record.index, artifact.content_type)}."
    return NothingSelectedError(artifact.pointer, reason, hint)
