"""A tool as a plain function."""

import inspect

import pytest

from coatcheck import Bank
from coatcheck.stores import MemoryStore
from coatcheck.tools import Tool, as_function, retrieval_tools


async def test_it_answers_as_the_tool_does() -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put("a\nb\n", name="two lines")
    [tool] = retrieval_tools(bank)
    asked = {"artifactId": artifact.pointer, "search": "b", "limit": 1}

    assert await as_function(tool)(**asked) == await tool.call(asked)


async def test_a_blocking_one_answers_without_being_awaited() -> None:
    bank = Bank(MemoryStore())
    artifact = await bank.put("a\nb\n")
    [tool] = retrieval_tools(bank)

    read = as_function(tool, blocking=True)

    assert read(artifactId=artifact.pointer) == await tool.call({"artifactId": artifact.pointer})
    assert not inspect.iscoroutinefunction(read)
    assert inspect.iscoroutinefunction(as_function(tool))


def test_its_signature_and_docstring_say_what_the_schema_does() -> None:
    [tool] = retrieval_tools(Bank(MemoryStore()))
    read = as_function(tool)

    assert read.__name__ == "retrieve_context"
    assert read.__annotations__ == {
        "artifactId": str,
        "offset": int | None,
        "limit": int | None,
        "search": str | None,
        "query": str | None,
        "regex": bool | None,
        "saveAs": str | None,
        "return": str,
    }
    parameters = inspect.signature(read).parameters
    assert [name for name, each in parameters.items() if each.default is each.empty] == [
        "artifactId"
    ]
    assert all(each.default is None for each in list(parameters.values())[1:])
    assert (read.__doc__ or "").startswith(tool.description + "\n\nArgs:\n")
    assert all(f"    {name}: " in (read.__doc__ or "") for name in parameters)


def test_null_for_an_argument_says_nothing_as_from_a_model() -> None:
    [tool] = retrieval_tools(Bank(MemoryStore()))

    reply = as_function(tool, blocking=True)(artifactId="report", search=None, limit=None)

    assert "unknown-pointer" in reply


def test_a_tool_that_takes_more_is_refused() -> None:
    async def call(arguments: object) -> str:
        return ""

    lists = Tool("poll", "Poll.", {"properties": {"handles": {"type": "array"}}}, call)

    with pytest.raises(ValueError, match="poll takes more than texts, integers and flags: handles"):
        as_function(lists)
