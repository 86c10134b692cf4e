"""ADK's artifacts in a bank, where tools can use them. Needs the `google_adk` extra."""

from typing import Any

from ..bank import Bank, BlockingBank
from ._sessions import Sessions

try:
    from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
    from google.genai import types

    from ._google_adk_files import File
except ImportError as error:
    message = (
        "coatcheck.adapters.google_adk_artifacts needs an extra:"
        " pip install 'coatcheck[google_adk]'"
    )
    raise ImportError(message) from error

_USER = "user:"


class CoatcheckArtifactService(BaseArtifactService):
    """Keeps the artifacts of ADK's sessions where `CoatcheckPlugin` keeps their results.

    So a model reads one by its file name, as it reads any artifact, and hands over its pointer.
    Versions count from 0, and two that are saved at once get two numbers where the store has
    `SupportsCreate`. A file called ``user:…``, or saved without a session, is the user's.

    Args:
        bank: As the plugin's; it stays its owner's.

    >>> import asyncio
    >>> from coatcheck.stores import MemoryStore
    >>> service = CoatcheckArtifactService(Bank(MemoryStore()))
    >>> file = {"app_name": "shop", "user_id": "ann", "session_id": "s1", "filename": "a.txt"}
    >>> asyncio.run(service.save_artifact(artifact=types.Part(text="hello"), **file))
    0
    >>> asyncio.run(service.load_artifact(**file)).text
    'hello'
    """

    def __init__(self, bank: Bank | BlockingBank) -> None:
        self._sessions = Sessions(bank)

    async def save_artifact(  # noqa: D102 - as BaseArtifactService, and the same below
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        part = types.Part.model_validate(artifact) if isinstance(artifact, dict) else artifact
        file = self._file(app_name, user_id, session_id, filename)
        return await file.save(part, custom_metadata or {})

    async def load_artifact(  # noqa: D102
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        return await self._file(app_name, user_id, session_id, filename).load(version)

    async def list_artifact_keys(  # noqa: D102
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        sessions = [None] if session_id is None else [None, session_id]
        files = [self._file(app_name, user_id, each, "") for each in sessions]
        return sorted([name for file in files for name in await file.names()])

    async def delete_artifact(  # noqa: D102
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        await self._file(app_name, user_id, session_id, filename).delete()

    async def list_versions(  # noqa: D102
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        return [*range(await self._file(app_name, user_id, session_id, filename).count())]

    async def list_artifact_versions(  # noqa: D102
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        return await self._file(app_name, user_id, session_id, filename).versions()

    async def get_artifact_version(  # noqa: D102
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        return await self._file(app_name, user_id, session_id, filename).version(version)

    def _file(self, app_name: str, user_id: str, session_id: str | None, name: str) -> File:
        is_users = session_id is None or name.startswith(_USER)
        session = self._sessions.of(app_name, user_id, *([] if is_users else [session_id]))
        return File(session.bank, _USER + name.removeprefix(_USER) if is_users else name)
