"""What may be a secret in a configuration is not shown."""

import json

import pytest

from coatcheck.apps.proxy._masked import masked

SECRET = "s3cret"


@pytest.mark.parametrize(
    "entry",
    [
        {"env": {"TOKEN": SECRET, "PLAIN": SECRET}},
        {"env": {"A": {"deeper": SECRET}}},
        {"headers": {"Authorization": f"Bearer {SECRET}"}},
        {"headers": {"Authorization": f"Bearer {SECRET} ${{X}}"}},
        {"args": ["--api-key", SECRET]},
        {"args": [f"--token={SECRET}"]},
        {"args": [f"DB_PASSWORD={SECRET}"]},
        {"args": ["--header", f"Authorization: Bearer {SECRET}"]},
        {"args": [f"postgresql://me:{SECRET}@host/db"]},
        {"args": ["sk-12345678" + SECRET]},
        {"args": ["x", f"https://host/mcp?apiKey={SECRET}"]},
        {"url": f"https://host/mcp?apiKey={SECRET}"},
        {"url": f"https://me:{SECRET}@host/mcp"},
        {"args": ["--pass", SECRET]},
        {"args": ["--pwd", SECRET]},
        {"args": ["--pat", SECRET]},
        {"args": ["--jwt", SECRET]},
        {"args": ["-H", f"X-Api: {SECRET}"]},
        {"args": ["--header", f"X-Api: {SECRET}"]},
        {"args": ["--connection-string", f"Server=x;Password={SECRET}"]},
        {"args": ["--db", f"Server=x;Password={SECRET}"]},
        {"args": ["-e", f"PGPASS={SECRET}"]},
        {"args": ["-p", SECRET.upper() + "!"]},
        {"args": ["-p", "hunter2" + SECRET]},
        {"args": ["-a", "Tr0ub4dor" + SECRET]},
        {"args": ["-u", f"me:{SECRET}"]},
        {"args": [f"-p{SECRET}"]},
        {"args": ["some-server", f"9f3a1c{SECRET}77b2e4d0"]},
        {"url": f"https://mcp.example.com/api/s/9f3a1c{SECRET}77b2e4d0/mcp"},
        {"args": [f"https://mcp.example.com/9f3a1c{SECRET}77b2e4d0"]},
        {"url": f"https://host/mcp#token={SECRET}"},
        {"command": f"env TOKEN={SECRET} npx"},
        {"apiKey": SECRET},
        {"oauth": {"clientSecret": SECRET}},
    ],
)
def test_a_secret_is_left_out(entry: dict[str, object]) -> None:
    text = json.dumps({"server": entry})

    assert SECRET in text.lower()
    assert SECRET not in masked(text).lower()
    assert "•••" in masked(text)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["-y", "@scope/server-files", "/home/me", "--keys", "-v"]},
        {"env": {"TOKEN": "${TOKEN}"}, "args": ["--token", "${env:TOKEN}"]},
        {"url": "https://host/mcp", "type": "http"},
        {"args": ["-p", "8080", "-m", "mcp_server_git", "-c", "./x.py", "-i", "@scope/pkg@1.2"]},
        {"url": "https://host.example.com/v1/some-long-path-of-words/mcp"},
        {"args": ["mcp-server-motherduck==1.2.3", "--db-path", ":memory:", "-port", "80"]},
        {"command": "C:\\keys\\x.exe", "args": ["--path", "/tmp", "--port", "80:80"]},
        {"apiKey": "${KEY}", "cwd": "/home/me/auth"},
    ],
)
def test_what_is_no_secret_is_shown_as_it_is(entry: dict[str, object]) -> None:
    text = json.dumps({"server": entry})

    assert masked(text) == text
