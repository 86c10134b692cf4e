"""What tests of the proxy share: the start commands of MCP servers that others wrote."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).parents[4]
NODE_MODULES = ROOT / "tests" / "servers" / "node_modules"


@dataclass(frozen=True, slots=True)
class RealServers:
    """Commands of servers in environments of their own, which `make setup` installs."""

    def git(self, repository: Path) -> list[str]:
        return [*self._python("servers", "mcp_server_git"), "--repository", str(repository)]

    def time(self) -> list[str]:
        return [*self._python("servers", "mcp_server_time"), "--local-timezone", "UTC"]

    def fetch(self) -> list[str]:
        options = ["--ignore-robots-txt", "--allow-private-ips"]
        return [*self._python("servers", "mcp_server_fetch"), *options]

    def motherduck(self, *options: str) -> list[str]:
        start = self._python("servers", "mcp_server_motherduck")
        return [*start, "--db-path", ":memory:", "--read-write", *options]

    def sqlite(self, database: Path) -> list[str]:
        return [*self._python("servers-old", "mcp_server_sqlite"), "--db-path", str(database)]

    def everything(self) -> list[str]:
        return [*self._node("everything"), "stdio"]

    def filesystem(self, *folders: Path) -> list[str]:
        return [*self._node("filesystem"), *map(str, folders)]

    def memory(self) -> list[str]:
        """Return its command; it wants the variable MEMORY_FILE_PATH."""
        return self._node("memory")

    def _python(self, group: str, module: str) -> list[str]:
        # Not its script, which names the folder that the environment was made in.
        python = ROOT / ".venvs" / group / "bin" / "python"
        assert python.exists(), f"make setup installs the group {group}"
        return [str(python), "-c", f"from {module} import main; main()"]

    def _node(self, name: str) -> list[str]:
        node = shutil.which("node")
        program = NODE_MODULES / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
        if node is None or not program.exists():
            pytest.skip("no npm here, or it could install nothing: make setup")
        return [node, str(program)]


@pytest.fixture(scope="session")
def real() -> RealServers:
    return RealServers()


@asynccontextmanager
async def client_of(
    command: list[str], env: Mapping[str, str] | None = None, **options: Any
) -> AsyncGenerator[mcp.Client, None]:
    """Connect the official client to a server over stdio."""
    # Not what pytest puts there for the test of the moment.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    parameters = StdioServerParameters(
        command=command[0], args=command[1:], env={**own, **(env or {})}
    )
    with tempfile.TemporaryFile("w") as log:
        async with mcp.Client(stdio_client(parameters, errlog=log), **options) as client:
            yield client


@pytest.fixture
def proxy(tmp_path: Path) -> Callable[..., list[str]]:
    """Returns what starts a proxy with a store of the test's own, given its further arguments."""

    def command(*arguments: str, limit: int | None = None) -> list[str]:
        options = ["--store", f"file:{tmp_path / 'store'}", "--no-journal"]
        if limit is not None:
            settings = tmp_path / "limits.toml"
            settings.write_text(f"inline_bytes = {limit}\n")
            options += ["--settings", str(settings)]
        return [sys.executable, "-m", "coatcheck.apps.cli", "proxy", *options, *arguments]

    return command


def servers_file(folder: Path, servers: Mapping[str, list[str] | dict[str, Any]]) -> str:
    """Write a configuration of servers: a command each, or a whole entry."""
    entries: dict[str, Any] = dict(servers)
    for name, entry in servers.items():
        if isinstance(entry, list):
            command, *args = entry
            entries[name] = {"command": command, "args": args}
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    return str(file)
