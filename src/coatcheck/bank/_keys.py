"""How the bank names what it stores: the keys of a scope and of the store itself."""

import re
import unicodedata
from hashlib import blake2b

from ..records import dataclass, is_id, names_pointer

FORMAT = "store/format"
SECRET = "store/secret"

_PLAIN = re.compile(rb"[a-z0-9_-]")
_SEGMENT = re.compile(r"[a-z0-9_%~-]{1,160}")
_DIGITS = re.compile(r"[0-9a-f]{16}")
_PAYLOAD_FILE_END = re.compile(r"-[0-9a-f]{8}\.[a-z0-9]{1,8}")
LONGEST_NAME = 200
_HELD = re.compile(r"s/[a-z0-9_%~-]{1,160}/held/[0-9a-f-]{36}-[0-9a-f]{16}")
_LONGEST_SEGMENT = 120
_KEPT_OF_LONG = 80
_LAST_NANOSECOND = 2**64 - 1


def kind_key(prefix: str) -> str:
    """Return where a registered prefix is written down for every process."""
    return f"store/kinds/{prefix}"


def scope_segment(scope: str) -> str:
    """Return the one path segment that stands for `scope`; no two scopes share one.

    `a-z 0-9 - _` stay, every other UTF-8 byte becomes `%xx`, capitals too, as some file
    systems fold them. A result over 120 characters keeps 80 and a BLAKE2b hash of the whole.

    >>> scope_segment("Review 1421")
    '%52eview%201421'
    """
    raw = scope.encode("utf-8", "surrogatepass")
    segment = "".join(chr(byte) if _PLAIN.match(bytes((byte,))) else f"%{byte:02x}" for byte in raw)
    if len(segment) <= _LONGEST_SEGMENT:
        return segment
    return f"{segment[:_KEPT_OF_LONG]}~{blake2b(raw, digest_size=16).hexdigest()}"


def is_segment(text: str) -> bool:
    """Return whether `text` has the form of a scope's segment."""
    return _SEGMENT.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return whether `text` could name an artifact: 1 to 200 printable characters, no pointer."""
    return (
        0 < len(text) <= LONGEST_NAME
        and not names_pointer(text)
        and not is_id(text)
        and not any(unicodedata.category(char) in {"Cc", "Cs"} for char in text)
    )


def inverted(time_ns: int) -> str:
    """Return 16 hex digits that sort newest first, from 1970 to 2554."""
    return f"{min(max(_LAST_NANOSECOND - time_ns, 0), _LAST_NANOSECOND):016x}"


@dataclass(frozen=True, slots=True)
class ScopeKeys:
    """The keys of one scope. A foreign id is a miss here by construction."""

    segment: str

    @classmethod
    def of(cls, scope: str) -> "ScopeKeys":
        """Return the keys of the scope with this plain name."""
        return cls(scope_segment(scope))

    @property
    def scope(self) -> str:
        """Where the plain name of the scope is written down, for listings of a store."""
        return f"store/scopes/{self.segment}"

    @property
    def listing_folder(self) -> str:
        """The folder whose keys list the scope's artifacts, newest first."""
        return f"s/{self.segment}/listing/"

    def record(self, id_: str) -> str:
        """Return the key whose creation commits the artifact."""
        return f"s/{self.segment}/records/{id_}"

    def payload(self, file: str) -> str:
        """Return the key of a payload, by the file name in its record."""
        return f"s/{self.segment}/payloads/{file}"

    def is_payload_of(self, id_: str, key: str) -> bool:
        """Return whether `key` is one that a payload of this scope's artifact may have."""
        return _PAYLOAD_FILE_END.fullmatch(key.removeprefix(self.payload(id_))) is not None

    def grant(self, id_: str) -> str:
        """Return the key that holds the owner's segment where another scope granted it."""
        return f"s/{self.segment}/grants/{id_}"

    def gone(self, id_: str) -> str:
        """Return the key of what is known of an artifact once it has expired."""
        return f"s/{self.segment}/gone/{id_}"

    def touched(self, id_: str) -> str:
        """Return the key that says when an artifact was used last, in nanoseconds since 1970."""
        return f"s/{self.segment}/touched/{id_}"

    def run_segment(self, run: str) -> str:
        """Return the segment that stands for a run of this scope, in this scope and in others."""
        # No segment of a scope has a slash, so no other scope and run are joined to the same.
        text = f"{self.segment}/{run}"
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @property
    def due_folder(self) -> str:
        """The folder whose keys say when something has its time, the first first."""
        return f"s/{self.segment}/due/"

    def due(self, time_ns: int, id_: str) -> str:
        """Return the key that says when an artifact, or its tombstone, has its time."""
        return f"{self.due_folder}{max(0, min(time_ns, _LAST_NANOSECOND)):016x}-{id_}"

    @property
    def lease_folder(self) -> str:
        """The folder of the leases of runs."""
        return f"s/{self.segment}/leases/"

    def lease(self, run_segment: str, holder: str) -> str:
        """Return the key of one holder's lease of a run."""
        return f"{self.lease_folder}{run_segment}-{holder}"

    def pin(self, run_segment: str, id_: str) -> str:
        """Return the key that pins an artifact for as long as somebody holds the run."""
        return f"s/{self.segment}/pins/{run_segment}/{id_}"

    def handle(self, id_: str) -> str:
        """Return the key of one piece of background work."""
        return f"s/{self.segment}/handles/{id_}"

    @property
    def cell_folder(self) -> str:
        """The folder of the scope's cells."""
        return f"s/{self.segment}/memory/"

    def cell(self, name: str) -> str:
        """Return the key of the cell with this name."""
        return f"{self.cell_folder}{_hash(name)}"

    @property
    def held_folder(self) -> str:
        """The folder whose keys say which of the scope's artifacts cells hold."""
        return f"s/{self.segment}/held/"

    def held(self, id_: str, token: str) -> str:
        """Return the key that says that a cell holds an artifact.

        Args:
            id_: Of the artifact.
            token: Of one writing of a cell, so that no other writer takes this key for its own.
        """
        return f"{self.held_folder}{id_}-{token}"

    def listing(self, time_ns: int, id_: str, size_bytes: int) -> str:
        """Return the key that lists one artifact."""
        return f"{self.listing_folder}{inverted(time_ns)}-{id_}-{size_bytes}"

    def name_folder(self, name: str) -> str:
        """Return the folder of all artifacts that bear `name`, newest first."""
        return f"s/{self.segment}/names/{_hash(name)}/"

    def name(self, name: str, time_ns: int, id_: str) -> str:
        """Return the key that makes an artifact found by `name`."""
        return f"{self.name_folder(name)}{inverted(time_ns)}-{id_}"


def owner_of(payload_key: str) -> ScopeKeys:
    """Return the keys of the scope that the key of a payload is in."""
    return ScopeKeys(payload_key.split("/", 2)[1])


def _hash(name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def is_stamped(key: str, time_ns: int) -> bool:
    """Return whether a key of a listing or name folder was put for what was stored then."""
    return key.rpartition("/")[2].startswith(inverted(time_ns))


def listed_id(key: str) -> str | None:
    """Return the id in a key of a listing, name or due folder, None where it was not put by us."""
    id_ = key.rpartition("/")[2][17:53]
    return id_ if is_id(id_) else None


def is_held_key(text: str) -> bool:
    """Return whether `text` has the form of a key that says that a cell holds an artifact."""
    return _HELD.fullmatch(text) is not None


def held_id(key: str) -> str:
    """Return the id in a key of a held folder; of one that was not put by us, no id."""
    return key.rpartition("/")[2][:36]


def listed_bytes(key: str) -> int:
    """Return the size in a key of a listing folder, 0 where it was not put by us."""
    digits = key.rpartition("/")[2][54:]
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


def listed_ns(key: str) -> int:
    """Return when what a key of a listing folder stands for was stored."""
    digits = key.rpartition("/")[2][:16]
    # One that was not put by us is never old.
    return _LAST_NANOSECOND - int(digits, 16) if _DIGITS.fullmatch(digits) else _LAST_NANOSECOND


def due_ns(key: str) -> int:
    """Return when what a key of a due folder is for has its time."""
    digits = key.rpartition("/")[2][:16]
    return int(digits, 16) if _DIGITS.fullmatch(digits) else _LAST_NANOSECOND
