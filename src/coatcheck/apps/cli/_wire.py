"""Records as JSON documents: the keys are those that models see, and stay."""

import base64

from ...records import Answer, Artifact, Matches, Page


def artifact_wire(artifact: Artifact) -> dict[str, object]:
    """Return all facts of an artifact, the same keys for each."""
    return {
        "pointer": artifact.pointer,
        "name": artifact.name,
        "label": artifact.label,
        "kind": artifact.kind,
        "contentType": artifact.content_type,
        "sizeBytes": artifact.size_bytes,
        "lengthChars": artifact.length_chars,
        "preview": artifact.preview,
        "glimpse": None if artifact.glimpse is None else str(artifact.glimpse),
        "note": artifact.read_back,
        "storedAt": artifact.stored_at.isoformat(),
        "expiresAt": None if artifact.expires_at is None else artifact.expires_at.isoformat(),
        "digest": artifact.digest,
        "source": artifact.source,
        "tool": artifact.tool,
        "run": artifact.run,
    }


def page_wire(page: Page) -> dict[str, object]:
    """Return a page; bytes, which JSON has none of, as base64 under a key of their own."""
    wire: dict[str, object] = (
        {"contentBase64": base64.b64encode(page.content).decode()}
        if isinstance(page.content, bytes)
        else {"content": page.content}
    )
    wire |= {
        "totalSize": page.total,
        "hasMore": page.has_more,
        "offset": page.offset,
        "limit": page.limit,
        "unit": page.unit,
    }
    if page.next_offset is not None:
        wire["nextOffset"] = page.next_offset
    if page.next_offset_chars is not None:
        wire["nextOffsetChars"] = page.next_offset_chars
    return wire


def matches_wire(found: Matches) -> dict[str, object]:
    """Return what a search found."""
    wire: dict[str, object] = {
        "matchCount": found.match_count,
        "totalMatches": found.total_matches,
        "truncated": found.truncated,
    }
    if found.total_matches is None:
        wire["countedMatches"] = found.counted_matches
    if found.next_search_offset is not None:
        wire["nextSearchOffset"] = found.next_search_offset
    wire["matches"] = [
        {
            "offset": match.offset,
            "line": match.line_number,
            "snippetOffset": match.snippet_offset,
            "snippet": match.snippet,
        }
        for match in found.matches
    ]
    return wire


def answer_wire(answer: Answer) -> dict[str, object]:
    """Return the answer of a query: its value, or the facts of the artifact it was banked as."""
    wire: dict[str, object] = {"language": answer.language, "rowCount": answer.row_count}
    if answer.artifact is not None:
        return {**wire, "artifact": artifact_wire(answer.artifact)}
    wire["value"] = answer.value
    return wire if answer.hint is None else {**wire, "hint": answer.hint}
