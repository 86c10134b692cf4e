"""Answers the public questions of the corpus through the public API, and compares them exactly.

The corpus is a folder beside the checkout; where there is none, nothing is checked.
"""

import argparse
import asyncio
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import cast

import corpus_queries as queries
from corpus_queries import Answer, Question
from rich.console import Console
from rich.table import Table

from coatcheck import Artifact, Bank, open_bank

CORPUS = Path(__file__).parents[2] / "shared/corpus"

# Select Graphic Rendition: the escape sequences that colour text.
_SGR = re.compile(r"\x1b\[[0-9;]*m")
_SECONDS = re.compile(r" in \d+(\.\d+)?s\b.*")
_LAST_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    id: str
    kind: str
    expected: Mapping[str, object]
    given: Mapping[str, object]
    told: Mapping[str, object]
    """What the glimpse states of it."""

    @property
    def is_right(self) -> bool:
        return self.given.keys() >= self.expected.keys() and queries.same(self.given, self.expected)

    @property
    def is_told_right(self) -> bool:
        return queries.same(self.told, self.expected)


async def text_stats(bank: Bank, artifact: Artifact, _: Question) -> Answer:
    end = await bank.read(artifact.pointer, offset=artifact.length_chars or 0)
    lines = await bank.read(artifact.pointer, limit=1, unit="lines")
    return {
        "bytes": artifact.size_bytes,
        "chars": artifact.length_chars,
        "utf16_units": sum([_utf16(part) async for part in contents(bank, artifact)]),
        "newlines": (end.line_number or 0) - 1,
        "lines": lines.total,
        "sha256": hashlib.sha256(await bank.payload(artifact.pointer)).hexdigest(),
    }


async def range_read(bank: Bank, artifact: Artifact, question: Question) -> Answer:
    page = await bank.read(artifact.pointer, **question.params)
    content = _text(page.content)
    return {
        "content": content,
        "returned_chars": len(content),
        "total_chars": page.total,
        "has_more": page.has_more,
        "next_offset": page.next_offset,
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
    }


async def line(bank: Bank, artifact: Artifact, question: Question) -> Answer:
    page = await bank.read(artifact.pointer, question.params["line"] - 1, 1, unit="lines")
    content = _text(page.content).removesuffix("\n")
    text = content.removesuffix("\r")
    return {
        "text": text,
        "chars": len(text),
        "start_offset_chars": page.offset_chars,
        "ended_with_crlf": content.endswith("\r"),
    }


async def search(bank: Bank, artifact: Artifact, question: Question) -> Answer:
    """Return every fact that a question may ask for of all matches, page by page."""
    needle = question.params["needle"]
    ignore_case = not question.params.get("case_sensitive", False)
    hits: list[tuple[int, int, str]] = []
    totals: list[int] = []
    offset: int | None = 0
    while offset is not None:
        found = await bank.search(artifact.pointer, needle, offset, ignore_case=ignore_case)
        if found.total_matches is None:
            raise RuntimeError(f"{needle} took too long to count")
        totals.append(found.total_matches + len(hits))
        for match in found.matches:
            start = match.offset - match.snippet_offset
            text = match.snippet[start : start + len(needle)]
            hits.append((match.offset, match.line_number, text))
        offset = found.next_search_offset
    if set(totals) != {len(hits)}:
        return {"total_matches": totals, "matches": len(hits)}
    answer: Answer = {"total_matches": len(hits)}
    if not hits:
        return answer
    first_offset, answer["first_line"], answer["first_text"] = hits[0]
    before = "".join([part async for part in contents(bank, artifact, first_offset)])
    answer["first_offset_chars"] = first_offset
    answer["first_offset_utf16"] = _utf16(before)
    answer["first_offset_bytes"] = len(before.encode())
    answer["last_offset_chars"] = hits[-1][0]
    if len(hits) > 50:
        answer["match_51_offset_chars"] = hits[50][0]
    lower = [offset for offset, _, text in hits if text == needle.lower()]
    answer["exact_lower_count"] = len(lower)
    answer["exact_lower_first_offset_chars"] = min(lower, default=None)
    return answer


async def final_line(bank: Bank, artifact: Artifact, _: Question) -> Answer:
    start = await bank.read(artifact.pointer, limit=1, unit="lines")
    offset = max(0, start.total - _LAST_LINES)
    page = await bank.read(artifact.pointer, offset, _LAST_LINES, unit="lines")
    lines = [text for text in _SGR.sub("", _text(page.content)).split("\n") if text.strip()]
    return {"text_without_time": _SECONDS.sub("", lines[-1])}


_Reply = Callable[[Bank, Artifact, Question], Awaitable[Answer]]

KINDS: dict[str, _Reply] = {
    "text_stats": text_stats,
    "range_read": range_read,
    "line": line,
    "search": search,
    "search_line": search,
    "final_line": final_line,
    "record_count": queries.record_count,
    "numeric_stats": queries.numeric_stats,
    "top_values": queries.top_values,
    "field_value": queries.field_value,
}


async def contents(bank: Bank, artifact: Artifact, stop: int | None = None) -> AsyncIterator[str]:
    """Yield the text as a reader gets it, page by page, up to a character."""
    offset: int | None = 0
    while offset is not None and offset != stop:
        limit = None if stop is None else stop - offset
        page = await bank.read(artifact.pointer, offset, limit)
        yield _text(page.content)
        offset = page.next_offset


async def answered(folder: Path, questions: list[Question]) -> list[Result]:
    """Bank each file once, as the text a tool would return, and answer all that is asked of it."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="coatcheck-") as root:
        async with open_bank(f"file:{root}") as bank:
            by_file = attrgetter("file")
            for file, asked in groupby(sorted(questions, key=by_file), by_file):
                # Newlines as they are: a tool that read them in text mode would not keep them.
                with (folder / file).open(encoding="utf-8", newline="") as opened:
                    text = opened.read()
                artifact = await bank.put(text, name=file)
                for question in asked:
                    answer = await KINDS[question.kind](bank, artifact, question)
                    # A question names the facts that it asks for by the keys of its answer.
                    given = {key: answer.get(key) for key in question.answer}
                    told = queries.of_glimpse(artifact, question)
                    results.append(
                        Result(
                            id=question.id,
                            kind=question.kind,
                            expected=question.answer,
                            given=given,
                            told=told,
                        )
                    )
    return results


def read_questions(path: Path) -> list[Question]:
    pairs = json.loads(path.read_text(encoding="utf-8"))["pairs"]
    paths: dict[str, str] = {}
    for pair in pairs:
        found = pair["params"].get("records_path")
        if found is not None:
            paths.setdefault(pair["file"], found)
    return [
        Question(
            **{key: pair[key] for key in ("id", "file", "kind", "params")},
            # How far a mean may be off is no part of the answer.
            answer={key: fact for key, fact in pair["answer"].items() if key != "mean_tolerance"},
            records_path=pair["params"].get("records_path", paths.get(pair["file"])),
        )
        for pair in pairs
    ]


def show(results: list[Result]) -> None:
    table = Table("kind", "right", "wrong", "told by glimpses", "told wrong", title="Corpus")
    for kind in KINDS:
        of_kind = [result for result in results if result.kind == kind]
        told = [result.is_told_right for result in of_kind if result.told]
        right = [result.is_right for result in of_kind]
        counts = (right.count(True), right.count(False), told.count(True), told.count(False))
        table.add_row(kind, *map(str, counts))
    Console().print(table)
    for result in results:
        if not result.is_right:
            print(f"{result.id}\n  expected {result.expected}\n  given    {result.given}")
        if not result.is_told_right:
            print(f"{result.id}\n  expected {result.expected}\n  told     {result.told}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="folder with qa.json")
    parser.add_argument("--json", action="store_true", help="print every answer as JSON")
    options = parser.parse_args()
    path = cast("Path", options.corpus) / "qa.json"
    if not path.is_file():
        print(f"skipped: no questions at {path}")
        return 0
    results = asyncio.run(answered(path.parent, read_questions(path)))
    if options.json:
        shown = [{**asdict(result), "right": result.is_right} for result in results]
        print(json.dumps(shown, ensure_ascii=False, indent=1))
    else:
        show(results)
    return 0 if results and all(each.is_right and each.is_told_right for each in results) else 1


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode()


if __name__ == "__main__":
    sys.exit(main())
