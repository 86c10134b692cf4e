"""The two eras of the protocol, and what a message of one becomes in the other. Pure.

The handshake era (to 2025-11-25) opens with `initialize` and lets a server ask its client. In the
modern one (from 2026-07-28) each request says who asks and what they can, and what a server wants
to know is the result of the request, which is then sent again with the answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from ._messages import INVALID_PARAMS, Json, RpcError

Era = Literal["handshake", "modern"]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042
_RESOURCE_NOT_FOUND = -32002

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_ENVELOPE = frozenset({VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY, LEVEL_KEY})

ASKING_METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""What a server may answer with questions in the modern era."""
NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that a modern request over HTTP repeats in its header Mcp-Name."""
ASKS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""What a server may ask of a client, and the capability by which a client says that it may."""

_CACHEABLE = frozenset(
    {
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    }
)
_UNCACHED: Json = {"ttlMs": 0, "cacheScope": "private"}
MODERN_FIELDS = ("resultType", "ttlMs", "cacheScope")
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a client introduced itself: exactly so it is introduced to servers."""

    era: Era
    version: str
    capabilities: Mapping[str, object] = field(default_factory=dict[str, object])
    client: Mapping[str, object] = field(
        default_factory=lambda: {"name": "unknown", "version": "unknown"}
    )

    def handshake(self) -> Json:
        """Return the parameters of `initialize`."""
        version = self.version if self.era == "handshake" else HANDSHAKE_VERSIONS[-1]
        return {
            "protocolVersion": version,
            "capabilities": dict(self.capabilities),
            "clientInfo": dict(self.client),
        }

    def envelope(self, version: str = MODERN_VERSIONS[-1]) -> Json:
        """Return what each modern request carries in its `_meta`."""
        return {
            VERSION_KEY: version,
            CLIENT_KEY: dict(self.client),
            CAPABILITIES_KEY: dict(self.capabilities),
        }


def meta_of(params: Mapping[str, object] | None) -> Mapping[str, object]:
    """Return the `_meta` of parameters, empty where there is none.

    >>> meta_of({"_meta": {"progressToken": 1}}), meta_of(None)
    ({'progressToken': 1}, {})
    """
    meta = None if params is None else params.get("_meta")
    return cast("Mapping[str, object]", meta) if isinstance(meta, dict) else {}


def is_modern(params: Mapping[str, object] | None) -> bool:
    """Return whether a request carries the envelope of the modern era."""
    return VERSION_KEY in meta_of(params)


def opening_of(method: str, params: Mapping[str, object] | None) -> Opening:
    """Return how the client of a first request introduces itself.

    Raises:
        RpcError: It asks for a version of the modern era that there is not, or is malformed.
    """
    if method == "initialize":
        given = params or {}
        version = given.get("protocolVersion")
        return Opening(
            era="handshake",
            version=version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            capabilities=_object(given.get("capabilities"), "capabilities"),
            client=_object(given.get("clientInfo"), "clientInfo") or _UNKNOWN,
        )
    meta = meta_of(params)
    version = meta.get(VERSION_KEY)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"{VERSION_KEY} is a text.")
    if version not in MODERN_VERSIONS:
        raise RpcError(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            {"supported": list(MODERN_VERSIONS), "requested": version},
        )
    return Opening(
        era="modern",
        version=version,
        capabilities=_object(meta.get(CAPABILITIES_KEY), CAPABILITIES_KEY),
        client=_object(meta.get(CLIENT_KEY), CLIENT_KEY) or _UNKNOWN,
    )


_UNKNOWN: Mapping[str, object] = {"name": "unknown", "version": "unknown"}


def _object(value: object, name: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"{name} is an object.")
    return cast("Mapping[str, object]", value)


def params_for(server: Era, params: Json | None, opening: Opening, level: str | None) -> Json:
    """Return the parameters of a client's request as a server of the given era takes them.

    Args:
        server: The era of the server.
        params: Those of the client; they are not changed.
        opening: How the client introduced itself.
        level: From which severity on a client of the handshake era wants log messages.
    """
    own = {} if params is None else dict(params)
    if server == opening.era:
        return own
    meta = dict(meta_of(params))
    if server == "modern":
        meta.update(opening.envelope())
        if level is not None:
            meta.setdefault(LEVEL_KEY, level)
    else:
        meta = {key: value for key, value in meta.items() if key not in _ENVELOPE}
        own.pop("inputResponses", None)
        own.pop("requestState", None)
    own.pop("_meta", None)
    return own | {"_meta": meta} if meta else own


def result_for(client: Era, server: Era, method: str, result: Json) -> Json:
    """Return the result of a server as a client of the given era takes it.

    >>> result_for("modern", "handshake", "tools/call", {"content": []})
    {'content': [], 'resultType': 'complete'}
    """
    if client == server:
        return result
    # In the handshake era they mean nothing, so one that stands there must not come to mean it.
    kept = {key: value for key, value in result.items() if key not in MODERN_FIELDS}
    if client == "modern":
        return kept | added_for_modern(method)
    meta = dict(meta_of(result))
    if SERVER_KEY in meta:
        del meta[SERVER_KEY]
        if meta:
            kept["_meta"] = meta
        else:
            del kept["_meta"]
    structured = kept.get("structuredContent")
    # Only the modern era lets it be any value.
    if structured is not None and not isinstance(structured, dict):
        kept["structuredContent"] = {"result": structured}
    return kept


def added_for_modern(method: str) -> Json:
    """Return the members that the result of a method has in the modern era alone."""
    complete: Json = {"resultType": "complete"}
    return complete | _UNCACHED if method in _CACHEABLE else complete


def error_for(client: Era, error: RpcError) -> RpcError:
    """Return an error of a server as a client of the given era knows it."""
    if client == "modern" and error.code == _RESOURCE_NOT_FOUND:
        return RpcError(INVALID_PARAMS, error.message, error.data)
    return error


def questions_of(result: object) -> Mapping[str, Json] | None:
    """Return what a result asks of the client, by key; None of one that asks nothing."""
    if not isinstance(result, dict):
        return None
    fields = cast("Json", result)
    if fields.get("resultType") != "input_required":
        return None
    asked = fields.get("inputRequests")
    return cast("Mapping[str, Json]", asked) if isinstance(asked, dict) else {}


def urls_asked(error: RpcError) -> Json | None:
    """Return the questions in an error that asks to visit addresses first, else None.

    The handshake era knows it as an error of its own, the modern one as questions like others.
    """
    if error.code != URL_ELICITATION_REQUIRED or not isinstance(error.data, dict):
        return None
    listed = cast("Json", error.data).get("elicitations")
    if not isinstance(listed, list) or not listed:
        return None
    return {
        f"url-{index}": {"method": "elicitation/create", "params": params}
        for index, params in enumerate(cast("list[object]", listed))
    }


def input_required(questions: Mapping[str, object], state: str) -> Json:
    """Return the result that asks a client of the modern era."""
    return {
        "resultType": "input_required",
        "inputRequests": dict(questions),
        "requestState": state,
    }


def reaches(level: object, threshold: str | None) -> bool:
    """Return whether a log message is as severe as its reader asked for.

    >>> reaches("info", "warning"), reaches("error", "warning"), reaches("error", None)
    (False, True, False)
    """
    if threshold not in _LEVELS:
        return False
    return level not in _LEVELS or _LEVELS.index(level) >= _LEVELS.index(threshold)
