"""The versions of one of ADK's artifacts: for `google_adk_artifacts`, and with its extra only."""

from typing import Any, TypeAlias, cast

from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.genai import types

from ..bank import Bank, is_name
from ..content import dumps, loads
from ..errors import InvalidArgumentError
from ..records import Artifact, Pointer

_Facts: TypeAlias = dict[str, Any]

_REMOVED = types.Part.from_bytes(data=b"", mime_type="application/octet-stream")
"""What ADK saves where a session is rewound to before there was the artifact."""


class File:
    """One file: a cell for each version, which says what it is, and holds the artifact.

    Args:
        bank: Of the session, or of the user.
        name: Any text.
    """

    def __init__(self, bank: Bank, name: str) -> None:
        self._bank = bank
        self._name = name
        # Of no session: in the id of one, this would be written in another way.
        self._cells = bank.cells_in(f"{bank.scope}/@artifacts")

    async def save(self, part: types.Part, metadata: _Facts) -> int:
        """Keep a part as the next version, and return its number.

        Raises:
            InvalidArgumentError: It is no text, bytes or reference to a file.
            UnencodableValueError: The metadata is no JSON.
        """
        blob, held = part.inline_data, None
        facts: _Facts = {"file": self._name, "metadata": metadata}
        if blob is not None and blob.data is not None:
            held = await self._put(blob.data, blob.mime_type)
            facts |= {"blob": blob.model_dump(exclude={"data"}, exclude_none=True)}
        elif part.text is not None:
            held = await self._put(part.text, None)
        elif part.file_data is not None:
            facts |= {"reference": part.file_data.model_dump(exclude_none=True)}
        else:
            raise InvalidArgumentError(
                "An artifact is a text, bytes, or a reference to a file.",
                "Save a Part that has one of them.",
            )
        facts |= {"pointer": held and held.pointer, "at": self._cells.stamp_ns() / 1e9}
        version = await self.count()
        while not await self._cells.create(self._cell(version), dumps(facts), held):
            version += 1
        return version

    async def load(self, version: int | None) -> types.Part | None:
        """Return a version, the last for None; None where there is none, or it was removed."""
        facts = await self._facts(version)
        if facts is None:
            return None
        if "reference" in facts:
            return types.Part(file_data=types.FileData(**facts["reference"]))
        if "blob" not in facts:
            return types.Part(text=await self._bank.get(facts["pointer"], str))
        data = await self._bank.payload(facts["pointer"])
        part = types.Part(inline_data=types.Blob(**facts["blob"], data=data))
        return None if part == _REMOVED else part

    async def version(self, version: int | None) -> ArtifactVersion | None:
        """Return what is known of a version, the last for None."""
        if version is None:
            version = await self.count() - 1
        facts = await self._facts(version)
        if facts is None:
            return None
        reference: _Facts = facts.get("reference", {})
        blob: _Facts = facts.get("blob", reference)
        is_text = "blob" not in facts and not reference
        pointer = facts["pointer"]
        lies_at = f"art://{Pointer.parse(pointer).id}" if pointer else reference["file_uri"]
        return ArtifactVersion(
            version=version,
            canonical_uri=lies_at,
            custom_metadata=facts["metadata"],
            create_time=facts["at"],
            mime_type="text/plain" if is_text else blob.get("mime_type"),
        )

    async def versions(self) -> list[ArtifactVersion]:
        """Return what is known of each version."""
        found = [await self.version(each) for each in range(await self.count())]
        return [each for each in found if each is not None]

    async def names(self) -> set[str]:
        """Return the names of all files beside this one, and its own."""
        return {cast("_Facts", loads(cell))["file"] async for cell in self._cells.all()}

    async def count(self) -> int:
        """Return how many versions there are. They have no gaps: few are looked at."""
        least, most = 0, 1  # of the count
        while await self._cells.get(self._cell(most - 1)) is not None:
            least, most = most, most * 2
        while most - least > 1:
            middle = (least + most) // 2
            there = await self._cells.get(self._cell(middle - 1)) is not None
            least, most = (middle, most) if there else (least, middle)
        return least

    async def delete(self) -> None:
        """Remove all versions, the last one first, so that there is never a gap."""
        for version in reversed(range(await self.count())):
            facts = await self._facts(version)
            await self._cells.delete(self._cell(version))
            if facts is not None and facts["pointer"]:
                await self._bank.delete(facts["pointer"])

    def _cell(self, version: int) -> str:
        return f"{version} {self._name}"

    async def _facts(self, version: int | None) -> _Facts | None:
        if version is None:
            version = await self.count() - 1
        stored = await self._cells.get(self._cell(version))
        return None if stored is None else cast("_Facts", loads(stored))

    async def _put(self, content: str | bytes, mime_type: str | None) -> Artifact:
        name = self._name if is_name(self._name) else None
        try:
            return await self._bank.put(content, name=name, content_type=mime_type)
        except InvalidArgumentError:  # it is not what it is called
            return await self._bank.put(content, name=name)
