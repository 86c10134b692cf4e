import subprocess
import sys
from typing import Any

import pytest
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.profiles import ModelProfile

from coatcheck.errors import ModelError
from coatcheck.runtime import RunContext, Step, StepExecutor, Task
from coatcheck.runtime._model import Call, Conversation, opened_model
from coatcheck.tools import Tool

WITHOUT_EXTRA = """
import sys
sys.modules["pydantic_ai"] = None
from coatcheck.runtime import RunContext, Step, StepExecutor, Task
step = Step(id="s")
try:
    StepExecutor(task=Task(steps=[step]), step=step, context=RunContext(), model="openai:x")
except ImportError as error:
    print(error)
"""
LIGHT = """
import sys, coatcheck.runtime
print(sorted({"pydantic_ai", "jsonschema_rs"} & {*sys.modules}))
"""


async def unused(_arguments: object) -> str:
    return ""


TOOLS = [Tool(name, f"Do {name}.", {"type": "object"}, unused) for name in ("a", "b")]


def talk(model: Model, **more: Any) -> Conversation:
    return Conversation(model, system="S", user="U", tools=TOOLS, **more)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (WITHOUT_EXTRA, "to ask a model needs an extra: pip install 'coatcheck[agent]'\n"),
        (LIGHT, "[]\n"),
    ],
)
def test_the_extra_is_needed_and_loaded_only_to_ask_a_model(code: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == said


def test_a_model_is_taken_as_it_is(scripted: Any) -> None:
    model = scripted([]).model

    assert opened_model(model) is model


def test_a_name_is_looked_up_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    assert opened_model("openai:gpt-5").model_name == "gpt-5"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("nope:x", "Unknown"),
        ("gpt-5", "cannot be used"),
        ("", "cannot be used"),
    ],
)
def test_a_name_that_cannot_be_used_says_why(
    monkeypatch: pytest.MonkeyPatch, context: RunContext, name: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    step = Step(id="s")

    with pytest.raises(ValueError, match=said):
        StepExecutor(task=Task(steps=[step]), step=step, context=context, model=name)


def test_a_provider_whose_package_is_missing_says_which() -> None:
    with pytest.raises(ImportError, match="install"):
        opened_model("mistral:mistral-large-latest")


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(TypeError, match="got int"):
        opened_model(5)  # type: ignore[arg-type]


async def test_a_reply_has_text_calls_and_tokens(scripted: Any) -> None:
    script = scripted([["one", "two", ("a", {"x": 1}), ("b", "no json")]])

    reply = await talk(script.model).ask()

    assert reply.text == "onetwo"
    assert [(call.name, call.arguments) for call in reply.calls] == [
        ("a", {"x": 1}),
        ("b", "no json"),
    ]
    assert reply.tokens > 50  # what the scripted provider reports for a request alone


async def test_answers_and_remarks_are_one_request(scripted: Any) -> None:
    script = scripted([[("a", {}), ("b", {})], "done"])
    conversation = talk(script.model)
    first = await conversation.ask()

    for call in first.calls:
        conversation.answer(call, f"of {call.name}", is_refused=call.name == "b")
    conversation.say("Go on.")
    await conversation.ask()

    parts = script.asked[1][-1].parts
    assert [part.content for part in parts] == ["of a", "of b", "Go on."]
    assert [part.outcome for part in parts[:2]] == ["success", "retried"]
    assert [part.tool_call_id for part in parts[:2]] == [call.id for call in first.calls]


async def test_lone_surrogates_never_reach_a_provider(scripted: Any) -> None:
    script = scripted(["a", "b"])
    conversation = Conversation(script.model, system="\ud800", user="\udfff")
    await conversation.ask()

    conversation.answer(Call("a", None, "1"), "\ud800")
    conversation.say("\ud801")
    await conversation.ask()

    said = [part.content for message in script.asked[1] for part in message.parts]
    assert said == ["\ufffd", "\ufffd", "a", "\ufffd", "\ufffd"]


@pytest.mark.parametrize(
    ("choice", "setting"), [(None, None), ("required", "required"), ("none", "none"), ("b", ["b"])]
)
async def test_a_choice_is_a_setting_and_all_tools_stay_listed(
    scripted: Any, choice: Any, setting: Any
) -> None:
    script = scripted(["x"])

    await talk(script.model, settings={"temperature": 0.5}).ask(choice=choice)

    settings = dict(script.offers[0].model_settings)
    assert settings.pop("temperature") == 0.5
    assert settings.get("tool_choice") == setting
    assert [tool.name for tool in script.offers[0].function_tools] == ["a", "b"]


@pytest.mark.parametrize(
    "profile",
    [
        ModelProfile(supports_forced_tool_choice=False),
        ModelProfile(supports_forced_tool_choice_with_thinking=False),
    ],
)
@pytest.mark.parametrize(
    ("choice", "tools"), [("required", ["a", "b"]), ("b", ["b"]), (None, ["a", "b"])]
)
async def test_a_model_that_cannot_be_forced_is_offered_less(
    scripted: Any, profile: Any, choice: Any, tools: list[str]
) -> None:
    script = scripted(["x"])
    model = FunctionModel(script.model.function, profile=profile)

    await talk(model).ask(choice=choice)

    assert [tool.name for tool in script.offers[0].function_tools] == tools
    assert "tool_choice" not in (script.offers[0].model_settings or {})


async def test_whatever_a_provider_raises_is_a_model_error(scripted: Any) -> None:
    with pytest.raises(ModelError, match="'scripted' failed: KeyError: 'x'") as caught:
        await talk(scripted([KeyError("x")]).model).ask()

    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.code == "model-unavailable"
