"""The chat server: real requests of real providers, and replies that a function makes."""

import urllib.error
import urllib.request
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck.runtime import Planner, RunContext, Step, StepExecutor, Task
from coatcheck.testing import chat_server


async def result_of(model: str) -> object:
    step = Step(id="s", instructions="Echo it.", output_schema={"type": "integer"})
    executor = StepExecutor(
        task=Task(id="t", steps=[step]), step=step, context=RunContext(), model=model
    )
    async with aclosing(executor.execute()) as events:
        async for _event in events:
            pass
    return await executor.get_result()


@pytest.mark.parametrize("model", ["openai-chat:any", "ollama:any"])
async def test_a_model_by_name_is_asked_over_http_and_its_calls_are_run(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    def reply(messages: list[dict[str, Any]]) -> Any:
        if messages[-1]["role"] == "tool":
            return [("finish_step", {"result": 7})]
        return [("memory_list", {}), ("memory_list", {"key_prefix": "task:"})]

    with chat_server(reply) as server:
        for name in ("OPENAI", "OLLAMA"):
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
            monkeypatch.setenv(f"{name}_API_KEY", "of no use here")
        result = await result_of(model)

    assert result == 7
    assert [body["model"] for body in server.asked] == ["any", "any"]
    offered = [tool["function"]["name"] for tool in server.asked[0]["tools"]]
    assert offered[-1] == "finish_step"
    tools = [each for each in server.asked[1]["messages"] if each["role"] == "tool"]
    assert ['"total":0' in each["content"] for each in tools] == [True, True]


@pytest.mark.parametrize(
    ("single", "offered"),
    [(False, ["add_task", "remove_task", "finish_plan"]), (True, ["create_task"])],
)
async def test_a_planner_asks_for_a_tool_call_over_http(
    monkeypatch: pytest.MonkeyPatch, single: bool, offered: list[str]
) -> None:
    def reply(messages: list[dict[str, Any]]) -> Any:
        task = {"id": "t", "title": "The task", "steps": [{"id": "s", "instructions": "Do it."}]}
        if single:
            return [("create_task", task)]
        return [("add_task", task), ("finish_plan", {"title": "The plan"})]

    with chat_server(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "of no use here")
        planner = Planner(
            objective="Plan.",
            context=RunContext(),
            model="openai-chat:any",
            single_task=single,
        )
        async with aclosing(planner.execute()) as events:
            async for _event in events:
                pass

    assert planner.plan is not None
    assert [step.id for step in planner.plan.tasks[0].steps] == ["s"]
    (body,) = server.asked
    assert body["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in body["tools"]] == offered


async def test_text_is_what_a_model_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server(lambda messages: "Let me think.") as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        result = await result_of("ollama:any")

    assert "Let me think." in str(result)
    assert "without finish_step" in str(result)


def test_any_other_address_is_not_found() -> None:
    with chat_server(lambda messages: "text") as server:
        request = urllib.request.Request(f"{server.url}/models", data=b"{}")
        with pytest.raises(urllib.error.HTTPError, match="404") as raised:
            urllib.request.urlopen(request)
        raised.value.close()
