"""Page tokens: opaque, bound to their query, signed when there is a secret.

A token is the key a query goes on from, behind a digest over that key and everything that makes the
query what it is. With a secret the digest is keyed, so that only who has the secret can make one.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from hmac import compare_digest

import orjson

from adjoin.errors import InvalidCursor
from adjoin.values import Item

_DIGEST_SIZE = 16


def encode_cursor(start: Item, given: int, query: bytes, secret: bytes) -> str:
    """A token for going on from a key, after so many results were given."""
    payload = orjson.dumps([start, given])
    return _spelled(_digest(payload, query, secret) + payload)


def decode_cursor(token: str, query: bytes, secret: bytes) -> tuple[Item, int]:
    try:
        raw = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    except (ValueError, AttributeError):
        raise InvalidCursor("the page token is not one of ours; start again from the first page") from None
    digest, payload = raw[:_DIGEST_SIZE], raw[_DIGEST_SIZE:]
    # The spelling is compared too: base64 has spare bits, and a token has one spelling.
    if not compare_digest(digest, _digest(payload, query, secret)) or _spelled(raw) != token:
        raise InvalidCursor(
            "the page token belongs to another query or was changed; "
            "pass it to the very query it came from, or start again from the first page"
        )
    try:
        start, given = orjson.loads(payload)
        is_one = type(start) is dict and type(given) is int and 0 <= given < 2**31
        is_one = is_one and all(type(part) is dict and [*map(type, part.values())] == [str] for part in start.values())
        is_one = is_one and all("S" in part for part in start.values())
    except (ValueError, TypeError):
        is_one = False
    if not is_one:
        # Where there is no secret, anybody can make a token.
        raise InvalidCursor("the page token is not one of ours; start again from the first page")
    return start, given


def _spelled(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _digest(payload: bytes, query: bytes, secret: bytes) -> bytes:
    key = blake2b(secret, digest_size=32, person=b"adjoin cursor").digest()
    return blake2b(query + b"\0" + payload, key=key, digest_size=_DIGEST_SIZE).digest()
