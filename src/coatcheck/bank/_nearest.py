"""What a model may have meant by a pointer that is not there."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from difflib import SequenceMatcher

from ..errors import shown
from ..records import Artifact

_LOOKED_AT = 50
_NAMED = 5
_LONGEST = 200


async def nearest(text: str, newest: AsyncGenerator[Artifact, None]) -> list[str]:
    """Return at most 5 pointers among the newest 50, the most alike to `text` first."""
    wanted = text[:_LONGEST]
    alike: list[tuple[float, int, str]] = []
    async with aclosing(newest):
        async for artifact in newest:
            known = [text for text in (artifact.pointer, artifact.name) if text is not None]
            likeness = max(SequenceMatcher(None, wanted, text).ratio() for text in known)
            name = "" if artifact.name is None else f" ({shown(artifact.name)})"
            alike.append((-likeness, len(alike), artifact.pointer + name))
            if len(alike) == _LOOKED_AT:
                break
    return [known for _, _, known in sorted(alike)[:_NAMED]]
