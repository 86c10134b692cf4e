"""What becomes of the result of a query: shown where it is small, else banked as an artifact."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Protocol, cast

from ..content import Encoding, Rows, Selector, dumps, encode, estimate_tokens, loads
from ..errors import DamagedRecordError
from ..records import Answer, Artifact, dataclass
from ._lookup import Lookup
from ._record import Record
from ._run import LEASE_NS
from ._select import selector_of
from ._shared import Shared
from ._threads import work_on

MOST_BYTES = 128 * 1024 * 1024
"""Most JSON of a result of SQL, which a process of its own writes."""
MOST_PATH_BYTES = 32 * 1024 * 1024
"""Most JSON of a result of JSONPath or JMESPath, which is written in the host's process."""
DERIVED_KIND = "derived"
"""The kind of an answer that is not of the kind of what was asked."""
_LOOKED_AT = 1_000
_ID = "id"


class Put(Protocol):
    """Banks an answer; see `Bank.put`."""

    async def __call__(
        self,
        value: object,
        *,
        name: str | None,
        kind: str,
        key: str,
        ttl_seconds: float | None,
        source: Mapping[str, object],
        preview_chars: int | None,
        shown_chars: int | None,
    ) -> Artifact:
        """Return the artifact."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One artifact that a query is about, or a part of one."""

    record: Record
    selector: Selector | None

    @property
    def pointer(self) -> str:
        """The pointer, with the selector."""
        whole = self.record.artifact.pointer
        return whole if self.selector is None else f"{whole}#{self.selector.text}"

    @property
    def key(self) -> str:
        """What tells it from all others, and changes when what is behind the pointer does."""
        return f"{self.record.payload_key}#{'' if self.selector is None else self.selector.text}"


async def found(lookup: Lookup, text: str) -> Asked:
    """Return what stands behind a pointer, an id or a name.

    Raises:
        UnknownPointerError, ExpiredPointerError: Nothing does.
        InvalidPointerError, InvalidArgumentError: Its selector is wrong.
    """
    selector = selector_of(text)
    return Asked(await lookup.found(text), selector)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query, and what it is about."""

    language: str
    expression: str
    asked: Sequence[Asked]
    """Each once."""
    sources: Sequence[Asked]
    """Those of them that the result is made of."""
    tables: Mapping[str, str] | None
    """Names of tables that the caller gave, and the pointers behind them."""
    name: str | None
    """What the answer is banked as; None where that is left to its size."""

    def key(self, kind: str) -> str:
        """Return what the same query gives the same artifact by."""
        pointers = [each.pointer for each in self.asked]
        tables = None if self.tables is None else sorted(self.tables.items())
        parts = [self.language, self.expression, pointers, tables, kind, self.name]
        return f"query {dumps(parts).decode('utf-8', 'surrogatepass')}"

    def source(self) -> dict[str, object]:
        """Return the lineage of the answer."""
        lineage: dict[str, object] = {
            "pointers": [each.pointer for each in self.asked],
            "language": self.language,
            "expression": self.expression,
        }
        return lineage if self.tables is None else {**lineage, "tables": dict(self.tables)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a query gave."""

    payload: bytes
    """Its JSON."""
    count: int
    rows: Rows | None = None
    """Where they lie in the payload, if that is known."""
    value: tuple[object] | None = None
    """The value of the payload, where it was read already; nobody else's."""
    keeps: str = ""
    """Of the kind of what was asked: ``rows``, ``ids``, or nothing."""
    hint: str | None = None
    """As of the answer."""


class Derivations:
    """Shows answers, or banks them: the same query gives the same artifact.

    Args:
        shared: What all scopes of the bank share.
        scope: The plain name of the scope.
        lookup: Finds the records.
        put: Banks an answer.
    """

    def __init__(self, shared: Shared, scope: str, lookup: Lookup, put: Put) -> None:
        self._shared = shared
        self._scope = scope
        self._lookup = lookup
        self._put = put

    async def answer(self, question: Question, run: Callable[[], Awaitable[Result]]) -> Answer:
        """Return the answer to a question, run only where it was not banked before."""
        kept_kind = self._kind(question.sources)
        for kind in dict.fromkeys((kept_kind, DERIVED_KIND)):
            known = await self._known(question.key(kind))
            if known is not None:
                return _banked(question, known)
        result = await run()
        if question.name is None and self._is_small(result.payload):
            value = await work_on(len(result.payload), _value_of, result)
            return Answer(
                language=question.language, value=value, row_count=result.count, hint=result.hint
            )
        kind = kept_kind if result.keeps else DERIVED_KIND
        # The first of a set of ids tell a model nothing, and should not pass through it.
        preview_chars = 0 if kind != DERIVED_KIND and result.keeps == "ids" else None
        artifact = await self._put(
            await work_on(len(result.payload), _encoding, result),
            name=question.name,
            kind=kind,
            key=question.key(kind),
            ttl_seconds=self._ttl_seconds(question.asked),
            source=question.source(),
            preview_chars=preview_chars,
            shown_chars=preview_chars,
        )
        return _banked(question, artifact)

    def _kind(self, sources: Sequence[Asked]) -> str:
        """Return the kind that all sources have, where it is one with a prefix of its own."""
        kinds = {each.record.artifact.kind for each in sources}
        if len(kinds) != 1:
            return DERIVED_KIND
        (kind,) = kinds
        return kind if self._shared.prefix_of(kind) != "art" else DERIVED_KIND

    async def _known(self, key: str) -> Artifact | None:
        """Return what was banked under a key, and is still there."""
        id_ = await self._shared.keyed_id(self._scope, key)
        try:
            record = await self._lookup.here(id_)
        except DamagedRecordError:
            return None
        if record is None or not await self._lookup.is_live(record):
            return None
        stands = await self._shared.fetch(record.payload_key, 0, 1) is not None
        return record.artifact if stands and await self._lookup.show(record) else None

    def _is_small(self, payload: bytes) -> bool:
        limits = self._shared.limits
        if len(payload) >= limits.inline_bytes:
            return False
        if len(payload) <= limits.page_tokens:  # no token is shorter than a byte
            return True
        return estimate_tokens(payload.decode("utf-8", "replace")) <= limits.page_tokens

    def _ttl_seconds(self, asked: Sequence[Asked]) -> float | None:
        """Return how long the answer lives: no longer than what it was made of.

        What is past its time is held by a run, at the least for as long as a lease.
        """
        ends = [each.record.expires_ns for each in asked if each.record.expires_ns is not None]
        if not ends:
            return None
        left_ns = min(ends) - self._shared.now_ns()
        return (left_ns if left_ns > 0 else LEASE_NS) / 1_000_000_000


def kept_of_path(source: object, found: object) -> str:
    """Return whether what a path found is rows as the source has them, or plain values as those.

    Returns:
        As `Result.keeps`.
    """
    if not isinstance(source, list) or not isinstance(found, list):
        return ""
    had = list(islice(cast("list[object]", source), _LOOKED_AT))
    has = cast("list[object]", found)
    if not any(isinstance(each, dict) for each in had):
        return "ids" if had and not any(isinstance(each, dict) for each in has) else ""
    rows = [cast("Mapping[str, object]", each) for each in had if isinstance(each, dict)]
    keys = set(rows[0]).intersection(*rows)
    are_rows = all(
        isinstance(each, dict) and keys.issubset(cast("dict[str, object]", each)) for each in has
    )
    return "rows" if are_rows else ""


def kept_of_sql(
    names: Sequence[str], tables: Sequence[Iterable[str] | None], *, is_bare: bool
) -> str:
    """Return whether a result of SQL is ids, or rows with all columns of its sources.

    Args:
        names: Of the result's columns.
        tables: The columns of each source, None where these are not all.
        is_bare: It is a list of plain values, as all of its sources are.

    Returns:
        As `Result.keeps`.
    """
    lower = {name.lower() for name in names}
    if is_bare or lower == {_ID}:
        return "ids" if tables else ""
    are_rows = bool(tables) and all(
        columns is not None and lower.issuperset(map(str.lower, columns)) for columns in tables
    )
    return "rows" if are_rows else ""


def _banked(question: Question, artifact: Artifact) -> Answer:
    count = 1
    if not (question.language == "jsonpath" and _is_singular(question.expression)):
        count = 1 if artifact.row_count is None else artifact.row_count
    return Answer(language=question.language, artifact=artifact, row_count=count)


def _is_singular(expression: str) -> bool:
    from ..content import compile_jsonpath

    return compile_jsonpath(expression.strip()).is_singular


def _value_of(result: Result) -> object:
    return loads(result.payload) if result.value is None else result.value[0]


def _encoding(result: Result) -> Encoding:
    value = _value_of(result)
    if result.rows is None and (result.value is None or isinstance(value, str)):
        return encode(value)
    return Encoding(
        value,
        form="json",
        content_type="application/json",
        payload=result.payload,
        rows=result.rows,
    )
