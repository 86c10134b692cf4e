"""Ids of artifacts: UUIDs that are cheap to read, in decimal digits only.

A pointer stands at least twice in each envelope, and again in each call that uses it. Tokenizers
take digits in groups of three; between letters and digits a token ends. Without letters the id of
an artifact is 17 tokens of o200k, always, where in hexadecimal it is 23 on average and up to 30.
What is left, 100 bits, nobody guesses.
"""

import secrets
from hashlib import blake2b

_IDS = 2 * 10**30
"""So many there are: 30 digits are free, and one is 8 or 9."""


def random_id() -> str:
    """Return a random id.

    Source: RFC 9562, section 5.4: a UUIDv4, of which fewer bits are random.
    """
    return _id(secrets.randbelow(_IDS), "4")


def keyed_id(secret: bytes, text: bytes) -> str:
    """Return the same id for the same text to all that know the secret.

    Source: RFC 9562, section 5.8: a UUIDv8, here over a keyed BLAKE2b (RFC 7693).

    >>> keyed_id(bytes(32), b"a call")
    '93159052-1747-8866-9711-716051673925'
    """
    digest = blake2b(text, key=secret, digest_size=32).digest()
    # Of 256 bits, so that no id is likelier than another by what could be told.
    return _id(int.from_bytes(digest) % _IDS, "8")


def _id(number: int, version: str) -> str:
    free, variant = divmod(number, 2)
    digits = f"{free:030}"
    return "-".join(
        (
            digits[:8],
            digits[8:12],
            version + digits[12:15],
            "89"[variant] + digits[15:18],
            digits[18:],
        )
    )
