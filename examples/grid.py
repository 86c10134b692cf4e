"""An electronic grid of up to 2,097,152 floats goes from one tool to the next by pointer.

The first experiment of "Solving Context Window Overflow in AI Agents" (arXiv 2511.22729), rebuilt
without a model or network: `make_grid` gives the grid of a molecule, `find_similar` takes it and
names the nearest of a library. The paper reports 20,822,181 tokens and failure with the grid in the
context, 1,234 tokens and success with a pointer. Here a script stands in for the model, so this
shows what the pointers cost, not what a model would do with them. Raw results are text by
`json.dumps`, as in most frameworks; a window has 200,000 tokens.

    pip install 'coatcheck[cli]' numpy
    python examples/grid.py
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from scripted import Function, Message, Run, calls, converse, handed_on, results, says, table

from coatcheck import open_bank

Grid: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

SYSTEM = (
    "You help chemists, one tool call at a time. A large result comes as JSON with a pointer "
    "(art:…): give a tool that pointer in place of the value. Do not guess. Answer in a sentence."
)
QUESTION = "Which molecule of the library is most similar to CCO?"
LIBRARY = ("ethylamine", "dimethyl ether", "ethanethiol", "acetaldehyde", "propane")
ANSWER = "The most similar molecule is acetaldehyde."


def tools(points: int) -> list[Function]:
    """Return the two tools, for grids of `points` a side."""

    def grid_of(seed: int) -> Grid:
        grid: Grid = np.random.default_rng(seed).random((points, points, points))
        scaled: Grid = (grid - grid.min()) / (grid.max() - grid.min())
        return scaled

    def make_grid(smiles: str) -> object:
        return grid_of(len(smiles))

    def find_similar(grid: object) -> str:
        distances = [
            # A little off, so that the answer is known, and the distance is not 0.
            float(np.abs(grid_of(at) + 0.001 - np.asarray(grid)).mean())
            for at in range(len(LIBRARY))
        ]
        return LIBRARY[int(np.argmin(distances))]

    return [
        Function(
            make_grid, "Compute a molecule's electronic grid.", {"smiles": {"type": "string"}}
        ),
        Function(
            find_similar, "Name the molecule with the nearest grid.", {"grid": {"type": "array"}}
        ),
    ]


def model(messages: Sequence[Message]) -> Message:
    """Write the next message, from what was shown."""
    shown = results(messages)
    if not shown:
        smiles = str(messages[1]["content"]).rstrip("?").split()[-1]
        return calls(("make_grid", {"smiles": smiles}), after=messages)
    if len(shown) == 1:
        return calls(("find_similar", {"grid": handed_on(shown[0])}), after=messages)
    return says(f"The most similar molecule is {shown[1]}.")


async def run(points: int) -> tuple[Run, Run]:
    """Return a run with pointers and a raw one, on grids of `points` a side."""
    # A fixed secret makes fixed pointers, and with them fixed counts.
    async with open_bank("memory:", secret=bytes(32)) as bank:
        ours = await converse(
            model, tools(points), system=SYSTEM, question=QUESTION, bank=bank, reader=True
        )
    raw = await converse(model, tools(points), system=SYSTEM, question=QUESTION)
    return ours, raw


def main() -> None:
    """Print what each size costs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 128], metavar="POINTS")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for points in options.sizes:
        ours, raw = asyncio.run(run(points))
        rows.append(
            {
                "floats": points**3,
                "pointer tokens": ours.tokens_in,
                "calls": len(ours.calls_in),
                "written": ours.tokens_out,
                "answer": ours.answer,
                "raw tokens": raw.tokens_in,
                "raw calls": len(raw.calls_in),
                "raw answer": raw.answer,
            }
        )
    if options.json:
        print(json.dumps(rows))
        return
    print(
        table([list(rows[0]), *[[value or "overflow" for value in row.values()] for row in rows]])
    )


if __name__ == "__main__":
    main()
