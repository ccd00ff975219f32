"""Heads as clients send them: where the lines stand that matter, and whether there is anything to decide.

A client sends lines of the same names in the same order with every request. So the names of a head are looked
at once, and what was found, its form, is kept for the next.

A plain head leaves nothing to decide: a POST of DynamoDB's own content type to a host that is the server's own,
signed in a header, with an answer that is neither compressed nor for a page of a browser. Nearly all requests
have one. What others mean is looked at elsewhere, header by header.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

Lines: TypeAlias = list[bytes]
"""Those of a head, as they came: a name, its value, the next name and so on."""

MAX_LINES = 200
"""Lines of a head at most."""

_KEPT = 256
_KEPT_LINES = 32
_KEPT_SIZE = 1024
"""Forms that are kept at most, and of which heads: clients have few names, and whoever has many is none."""

_ABSENT: Final = -1
_PLAIN_DIGITS = 7
"""Of a length that is not too large, whatever its digits."""

# Of these a head has one line at most: with two, whoever stands between could read another than the server does.
_ONCE = frozenset(
    (
        b"host", b"content-length", b"transfer-encoding", b"content-type", b"content-encoding", b"authorization",
        b"x-amz-target", b"x-amz-date", b"origin", b"expect",
    )
)  # fmt: skip

# What others than SDKs send, or SDKs seldom. A head with one of these is not plain.
_TO_BE_LOOKED_AT = frozenset(
    (b"transfer-encoding", b"content-encoding", b"expect", b"origin", b"sec-fetch-site", b"upgrade")
)

_NEEDED = (b"host", b"content-length", b"content-type", b"authorization", b"x-amz-target", b"x-amz-date")


@dataclass(frozen=True, slots=True)
class Form:
    """Where among the lines of a head the values stand that matter; -1 for one that is not there."""

    host: int
    length: int
    kind: int
    authorization: int
    target: int
    transfer: int
    expect: int
    accepted: int
    may_be_plain: bool
    """Whether it has every line that a plain head has, and none that others have."""
    twice: str | None
    """A line that it has twice, though there may be one only."""


def is_plain(form: Form, lines: Lines, is_own_host: Callable[[bytes], bool]) -> bool:
    """Whether the head of a POST with these lines is plain."""
    if not form.may_be_plain:
        return False
    authorization = lines[form.authorization]
    return (
        lines[form.kind] == b"application/x-amz-json-1.0"
        and len(lines[form.length]) <= _PLAIN_DIGITS
        and authorization.startswith(b"AWS4-HMAC-SHA256 Credential=")
        and b"SignedHeaders=" in authorization
        and b"Signature=" in authorization
        and (form.accepted < 0 or lines[form.accepted] == b"identity")
        and is_own_host(lines[form.host])
    )


_forms: dict[tuple[bytes, ...], Form] = {}


def form_of(lines: Lines) -> Form:
    """Where in a head with lines of these names is what."""
    names = tuple(lines[::2])
    form = _forms.get(names)
    if form is None:
        form = _looked_at(names)
        if len(names) <= _KEPT_LINES and sum(map(len, names)) <= _KEPT_SIZE:
            if len(_forms) >= _KEPT:
                _forms.clear()
            _forms[names] = form
    return form


def _looked_at(names: tuple[bytes, ...]) -> Form:
    at: dict[bytes, int] = {}
    twice: str | None = None
    for number, name in enumerate(names):
        lower = name.lower()
        if lower in at and lower in _ONCE and twice is None:
            twice = name.decode("latin-1")
        at[lower] = 2 * number + 1
    return Form(
        host=at.get(b"host", _ABSENT),
        length=at.get(b"content-length", _ABSENT),
        kind=at.get(b"content-type", _ABSENT),
        authorization=at.get(b"authorization", _ABSENT),
        target=at.get(b"x-amz-target", _ABSENT),
        transfer=at.get(b"transfer-encoding", _ABSENT),
        expect=at.get(b"expect", _ABSENT),
        accepted=at.get(b"accept-encoding", _ABSENT),
        may_be_plain=(
            twice is None
            and len(names) <= MAX_LINES
            and all(name in at for name in _NEEDED)
            and _TO_BE_LOOKED_AT.isdisjoint(at)
        ),
        twice=twice,
    )
