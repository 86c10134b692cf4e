"""The demo's three jobs: tools fit for the input, a question, and the script to go with it."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ....records import dataclass
from ._policy import Results, Script

Row = dict[str, Any]

_SHOWN_CHARS = 80
_SHOWN_GROUPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something to do for an agent."""

    question: str
    source: Callable[..., object]
    """The function whose result is large."""
    source_schema: Mapping[str, Any]
    work: tuple[Callable[..., object], ...]
    """Functions that compute from all of it."""
    parameter_schema: Mapping[str, Any]
    script: Script
    inline_bytes: int | None = None
    """From which size on the result is offloaded; None: as the library has it."""


def inventory_job(inventory: Callable[[], list[Row]]) -> Job:
    """Return the job of taking stock of a folder."""
    return Job(
        question="How many files are there, how large are they in all, which ten are the "
        "largest, and which are copies of others?",
        source=inventory,
        source_schema={"type": "object", "properties": {}},
        work=(count, total_size, largest, duplicates),
        parameter_schema={"type": "array", "items": {"type": "object"}},
        script=Script(
            source="inventory",
            parameter="rows",
            work=(("count", {}), ("total_size", {}), ("largest", {"n": 10}), ("duplicates", {})),
            look_for=lambda results: next((str(row["path"]) for row in _largest(results)), ""),
            answer=_inventory_answer,
        ),
    )


def text_job(file: Path, name: str) -> Job:
    """Return the job of describing the text of a file that the model is told by its name."""
    files = {name: file}

    def read_file(name: str) -> str:
        """Read a file."""
        return files[name].read_bytes().decode()

    return Job(
        question=_file_question(
            "How many lines are in this text, which are the longest, and "
            "which words stand in it most often?",
            name,
        ),
        source=read_file,
        source_schema=_NAME_SCHEMA,
        work=(count_lines, longest_lines, top_words),
        parameter_schema={"type": "string"},
        script=Script(
            source="read_file",
            parameter="text",
            work=(("count_lines", {}), ("longest_lines", {"n": 5}), ("top_words", {"n": 10})),
            look_for=lambda results: next((str(top["word"]) for top in _words(results)), ""),
            answer=_text_answer,
        ),
    )


def binary_job(file: Path, name: str) -> Job:
    """Return the job of describing bytes. A model cannot read them, so they never go inline."""
    files = {name: file}

    def read_file(name: str) -> bytes:
        """Read a file."""
        return files[name].read_bytes()

    return Job(
        question=_file_question(
            "Which byte values are the most frequent in this file, how "
            "random is it, and which texts are in it?",
            name,
        ),
        source=read_file,
        source_schema=_NAME_SCHEMA,
        work=(count_bytes, entropy, longest_texts),
        parameter_schema={"type": "string"},
        script=Script(
            source="read_file",
            parameter="content",
            work=(("count_bytes", {"n": 5}), ("entropy", {}), ("longest_texts", {"n": 5})),
            look_for=lambda _: "",
            answer=_binary_answer,
        ),
        inline_bytes=0,
    )


def definition(job: Job, function: Callable[..., object]) -> tuple[str, str, Mapping[str, Any]]:
    """Return name, description and JSON schema of one of a job's tools."""
    told = str(function.__doc__).splitlines()[0]
    if function is job.source:
        return function.__name__, told, job.source_schema
    parameter, more = job.script.parameter, dict(job.script.work)[function.__name__]
    properties = {parameter: job.parameter_schema, **{name: {"type": "integer"} for name in more}}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return function.__name__, told, schema


def count(rows: list[Row]) -> int:
    """Count rows."""
    return len(rows)


def total_size(rows: list[Row]) -> int:
    """Sum the column size."""
    return sum(row["size"] for row in rows)


def largest(rows: list[Row], n: int) -> list[Row]:
    """Return the n rows of largest size."""
    ranked = sorted(rows, key=lambda row: (-row["size"], row["path"]))
    return [{"path": row["path"], "size": row["size"]} for row in ranked[:n]]


def duplicates(rows: list[Row]) -> Row:
    """Find rows of equal digest."""
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["digest"]].append(row)
    copied = [group for group in groups.values() if len(group) > 1]
    copied.sort(key=lambda group: (-group[0]["size"] * (len(group) - 1), group[0]["path"]))
    return {
        "groups": len(copied),
        "copies": sum(len(group) - 1 for group in copied),
        "bytes": sum(group[0]["size"] * (len(group) - 1) for group in copied),
        "largest": [
            {"files": len(group), "size": group[0]["size"], "first": group[0]["path"]}
            for group in copied[:_SHOWN_GROUPS]
        ],
    }


def count_lines(text: str) -> int:
    """Count lines."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def longest_lines(text: str, n: int) -> list[Row]:
    """Return the n longest lines: number, length, start."""
    numbered = enumerate(text.split("\n"), 1)
    ranked = sorted(numbered, key=lambda item: (-len(item[1]), item[0]))[:n]
    return [
        {"line": number, "chars": len(line), "start": line[:_SHOWN_CHARS]}
        for number, line in ranked
        if line
    ]


def top_words(text: str, n: int) -> list[Row]:
    """Return the n most frequent words of four letters or more."""
    words = Counter(word.casefold() for word in re.findall(r"\w{4,80}", text))
    return [{"word": word, "times": times} for word, times in words.most_common(n)]


def count_bytes(content: bytes, n: int) -> Row:
    """Count bytes, in all and the n most frequent values."""
    values = Counter(content)
    most = [{"value": value, "times": times} for value, times in values.most_common(n)]
    return {"bytes": len(content), "values": len(values), "most": most}


def entropy(content: bytes) -> float:
    """Return bits of information per byte, 0 to 8."""
    shares = [times / len(content) for times in Counter(content).values()]
    return round(sum(share * math.log2(1 / share) for share in shares), 3)


def longest_texts(content: bytes, n: int) -> list[str]:
    """Return the n longest runs of printable ASCII."""
    runs = {run.decode().strip() for run in re.findall(rb"[ -~]{4,80}", content)} - {""}
    return sorted(runs, key=lambda run: (-len(run), run))[:n]


_NAME_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


def _file_question(question: str, name: str) -> str:
    return f"{question}\n{json.dumps({'name': name}, ensure_ascii=False)}"


def _largest(results: Results) -> Sequence[Row]:
    rows: Sequence[Row] = json.loads(results["largest"])
    return rows


def _words(results: Results) -> Sequence[Row]:
    words: Sequence[Row] = json.loads(results["top_words"])
    return words


def _inventory_answer(results: Results) -> str:
    same = json.loads(results["duplicates"])
    lines = [
        f"{int(results['count']):,} files, {int(results['total_size']):,} bytes in all.",
        f"{same['copies']:,} of them are copies of another, {same['bytes']:,} bytes.",
        "The largest:",
        *(f"- {row['path']}: {row['size']:,}" for row in _largest(results)),
    ]
    return "\n".join(lines + _read_back(results))


def _text_answer(results: Results) -> str:
    longest = json.loads(results["longest_lines"])
    words = ", ".join(f"{top['word']} ({top['times']:,})" for top in _words(results))
    lengths = ", ".join(f"{line['line']:,} ({line['chars']:,} characters)" for line in longest)
    lines = [
        f"{int(results['count_lines']):,} lines.",
        f"The longest: {lengths or 'none'}.",
        f"The most frequent words: {words or 'none'}.",
    ]
    return "\n".join(lines + _read_back(results))


def _binary_answer(results: Results) -> str:
    counted, texts = json.loads(results["count_bytes"]), json.loads(results["longest_texts"])
    most = ", ".join(f"0x{top['value']:02x} ({top['times']:,} times)" for top in counted["most"])
    return "\n".join(
        [
            f"{counted['bytes']:,} bytes of {counted['values']} values, most often {most}.",
            f"{results['entropy']} bits of information a byte.",
            "The longest texts:" if texts else "No text in it.",
            *(f"  {text}" for text in texts),
        ]
    )


def _read_back(results: Results) -> list[str]:
    """Return what reading and searching gave, where there was need to."""
    if "read" not in results:
        return []
    page = json.loads(results["read"])
    lines = [f"I read {len(page['content']):,} characters from {page['offset']:,} on."]
    if "search" in results:
        found = json.loads(results["search"])
        places = [
            f", the first in line {hit['line']:,} at character {hit['offset']:,}"
            for hit in found["matches"]
        ]
        lines.append(f"The search found {found['totalMatches']:,}{''.join(places)}.")
    return lines
