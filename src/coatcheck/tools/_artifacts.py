"""The trio `storeArtifact`, `getArtifact`, `listArtifacts`, for hosts that ask for it."""

from contextlib import aclosing

from ..bank import Bank
from ..content import dumps, visible
from ..errors import UnknownPointerError, shown
from ..records import Artifact
from ._noted import journaled
from ._retrieve import page_reply
from ._tool import Arguments, Tool, tool

_LISTED = 50


def artifact_tools(bank: Bank) -> list[Tool]:
    """Return the three tools by which a model keeps and finds values, for any framework."""

    async def store_artifact(arguments: Arguments) -> str:
        artifact = await bank.put(
            arguments["value"],
            name=arguments["name"],
            content_type=arguments.get("contentType"),
        )
        reply = {
            "pointer": artifact.pointer,
            "preview": artifact.shown_preview,
            "sizeBytes": artifact.size_bytes,
            "name": artifact.name,
        }
        return dumps(reply).decode()

    async def get_artifact(arguments: Arguments) -> str:
        asked = arguments["pointerOrName"]
        try:
            page = await bank.read(asked, limit=bank.limits.page_cap_chars)
        except UnknownPointerError:
            return f"[no artifact found for {shown(asked)}]"
        if page.has_more:
            return page_reply(await bank.read(asked))
        return visible(str(page.content))

    async def list_artifacts(_arguments: Arguments) -> str:
        listed: list[dict[str, object]] = []
        async with aclosing(bank.list()) as newest:
            async for artifact in newest:
                listed.append(_listed(artifact))
                if bank.current_run is not None:
                    await bank.find(artifact.pointer)  # so that the run holds what it is told of
                if len(listed) == _LISTED:
                    break
        return dumps(listed).decode()

    tools = [
        tool(
            "storeArtifact",
            "Bank text under a name; JSON-encode structures. Returns its pointer.",
            {"name": "string", "value": "string", "contentType": "string"},
            ("name", "value"),
            store_artifact,
        ),
        tool(
            "getArtifact",
            "Get the whole text behind a pointer or name, its first page if very long.",
            {"pointerOrName": "string"},
            ("pointerOrName",),
            get_artifact,
        ),
        tool("listArtifacts", f"List the newest {_LISTED} artifacts.", {}, (), list_artifacts),
    ]
    return journaled(bank, tools)


def _listed(artifact: Artifact) -> dict[str, object]:
    listed: dict[str, object] = {"pointer": artifact.pointer}
    if artifact.name is not None:
        listed["name"] = artifact.name
    return {
        **listed,
        "sizeBytes": artifact.size_bytes,
        "preview": artifact.shown_preview,
        "contentType": artifact.content_type,
        "storedAt": artifact.stored_at.isoformat(),
    }
