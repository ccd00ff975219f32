"""Heads as SDKs send them, recognised in one pass.

A plain head leaves nothing to decide: a POST of DynamoDB's own content type, signed in a header in the form
that SDKs write, on a connection that stays open, with an answer that is neither compressed nor for a page of
another origin. Nearly all requests have one. What others mean is looked at elsewhere, header by header.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(
    rb"POST / HTTP/1\.1(?:\r\n(?:"
    rb"[Xx]-[Aa]mz-(?:[Tt]arget: (?P<target>[^ \r]++)(?=\r)|[Dd]ate: (?P<date>)[^\r]++)"
    rb"|[Cc]ontent-(?:[Ll]ength: (?P<length>[0-9]{1,8}+)(?=\r)|[Tt]ype: application/x-amz-json-1\.0(?P<type>)(?=\r))"
    rb"|[Aa]uthorization: AWS4-HMAC-SHA256"
    rb" Credential=[^ ,\r]++, ?SignedHeaders=[^ ,\r]++, ?Signature=(?P<signature>)[^\r]++"
    rb"|(?:[Aa]ccept-[Ee]ncoding: identity|[Cc]onnection: keep-alive)(?=\r)"
    # The most frequent of those that do not matter, and then any that nobody asks for.
    rb"|(?:[Hh]ost|[Uu]ser-[Aa]gent|amz-sdk-(?:request|invocation-id)): [^\r]*+"
    rb"|(?!(?i:x-amz-target|x-amz-date|content-|authorization|accept-encoding|connection|transfer-encoding|expect"
    rb"|origin|host|user-agent|amz-sdk-))"
    rb"[^:\r]++:[^\r]*+"
    # A line is of one sort only, so that this never looks back for long. (Possessive, it would lose its groups
    # in Python before 3.11.5.)
    rb"))+\r\n\r\n"
).match


def plain_head(data: bytes) -> tuple[str, int, int] | None:
    """If `data` begins with a plain head: what X-Amz-Target says, where the head ends, and the length of the body."""
    found = _PLAIN(data)
    if found is None:
        return None
    target, date, length, kind, signature = found.groups()
    if target is None or date is None or length is None or kind is None or signature is None:
        return None
    return target.decode("latin-1"), found.end(), int(length)
