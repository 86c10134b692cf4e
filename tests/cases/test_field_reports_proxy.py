"""Reports on proxies before several servers: what is listed can be called, by lasting names."""

import asyncio
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import mcp
import pytest
from mcp import StdioServerParameters

SERVER = Path(__file__).parents[1] / "apps" / "proxy" / "servers" / "plain.py"
LONG = "a_tool_whose_name_is_longer_than_any_host_would_let_it_be_in_a_list"
SERVERS = {
    "alpha": ["search", f"{LONG}_001", f"{LONG}_002"],
    "beta": ["search", "read.file", "read/file", f"{LONG}_001"],
}


def config(folder: Path, names: Iterable[str]) -> Path:
    servers = {
        name: {
            "command": sys.executable,
            "args": [str(SERVER), "--name", name, "--tools", ",".join(SERVERS[name])],
        }
        for name in names
    }
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


async def call_all(era: str, file: Path) -> dict[str, str]:
    """Return what each tool that is listed answers, by the name it is listed under."""
    options = ["--store", "memory:", "--no-journal", "--config", str(file)]
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "coatcheck.apps.cli", "proxy", *options]
    )
    answers: dict[str, str] = {}
    async with mcp.Client(parameters, mode=cast("Any", era)) as session:
        for tool in (await session.list_tools()).tools:
            if tool.name != "retrieve_context":
                result: Any = await session.call_tool(tool.name, {})
                assert result.is_error is False
                answers[tool.name] = result.content[0].text
    return answers


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_br_063_and_br_065_each_name_that_is_listed_reaches_its_own_tool(
    era: str, tmp_path: Path
) -> None:
    answers, again = (
        asyncio.run(asyncio.wait_for(call_all(era, config(tmp_path, names)), 60))
        for names in (["alpha", "beta"], ["beta", "alpha"])
    )

    expected = [f"{server}: {tool}" for server, tools in SERVERS.items() for tool in tools]
    assert len(f"{LONG}_001") > 64
    assert sorted(answers.values()) == sorted(expected)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in answers)
    assert answers["alpha_search"] == "alpha: search"
    assert answers["beta_search"] == "beta: search"
    assert again == answers
