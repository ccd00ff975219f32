"""Key templates as Ibis expressions: which keys are of a template, and what their parts say.

What `layouts.keys.Template.match` does to one key, these do to a column of them, inside an engine. Patterns
are written so that RE2 (DuckDB) and Java (Spark) read them alike.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from decimal import Decimal
from enum import Enum

import ibis
import ibis.expr.types as ir

from adjoin.layouts.interface import BoundLayout
from adjoin.layouts.keys import Part, Quoting, Template, spellings
from adjoin.schema import EdgeType
from adjoin.values import MAX_EXPONENT, MIN_EXPONENT

_DIGITS, _COMPLEMENT = "0123456789", "9876543210"
_BIAS = 500
_IN_NUMBERS = frozenset(".~")
"""Signs of sortable numbers; where they end a part of a key, they are quoted in it."""


@ibis.udf.scalar.builtin(name="chr")
def _character(code: int) -> str:
    """The character of a code; a NUL cannot be written into a statement."""
    raise NotImplementedError  # the engine's own function is called


def matches(template: Template, key: ir.StringValue) -> ir.BooleanValue:
    """Whether a key is one of the template."""
    if not template.parts:
        return key == str(template)
    if template.is_tail and not template.quoting.escape:
        holds = key.startswith(template.lead)
        for end in sorted(template.quoting.ends):
            holds &= ~_rest(template, key).contains(end)
    elif template.is_tail:
        # Most ids are spelled as they are, and then one search tells.
        rest = _rest(template, key)
        plain = ~rest.re_search(_taboo(template.quoting))
        holds = key.startswith(template.lead) & (plain | rest.re_search(rf"\A{_inside(template.quoting)}\z"))
    else:
        holds = key.re_search(_pattern(template))
    for part in template.parts:
        holds &= _is_spelled(template, part, key)
    return holds


def _is_spelled(template: Template, part: Part, key: ir.StringValue) -> ir.BooleanValue:
    """Whether a part of keys that match is how a value of its type is spelled; `layouts.keys.Part.is_spelled`."""
    text = _raw(template, part, key)
    holds: ir.BooleanValue = text != "" if part.is_id else ibis.literal(True)
    name = part.transform.name
    if part.transform.decode is None or (not name and part.plain in (None, str)):
        return holds
    text = unquoted(template.quoting, text)
    if name == "sortable":
        power = text.substr(1, 3).try_cast("int64")
        power = ibis.ifelse(text.startswith("n"), 999 - power, power)
        in_range = (power > _BIAS + MIN_EXPONENT) & (power <= _BIAS + MAX_EXPONENT + 1)
        holds &= text.re_search(_SORTABLE) & ((text == "o") | in_range)
    elif name:
        holds &= text.re_search(rf"\A[0-9]{{{int(name.rstrip('d'))}}}\z")
    plain = _plain(part, template.quoting, _raw(template, part, key))
    kind = part.plain or part.transform.numbers or str
    plain = unquoted(template.quoting, plain)
    if issubclass(kind, dt.date):
        # A pattern does not know how many days a month has.
        holds &= plain.substr(0, 10).try_cast("date").notnull()
    return holds & plain.re_search(_spelling(kind))


def _spelling(plain: type) -> str:
    """The pattern of how values of a type are spelled in keys."""
    if issubclass(plain, Enum):
        return rf"\A({'|'.join(escaped(text) for _, text in spellings(plain))})\z"
    return next((pattern for kind, pattern in _SPELLINGS if issubclass(plain, kind)), r"\A")


_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_SPELLINGS: tuple[tuple[type, str], ...] = (
    (int, r"\A(0|-?[1-9][0-9]*)\z"),
    (Decimal, r"\A(0|-?([1-9][0-9]*(\.[0-9]*[1-9])?|0\.[0-9]*[1-9]))\z"),
    (uuid.UUID, r"\A[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\z"),
    (dt.datetime, rf"\A{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{{6}}Z?\z"),
    (dt.date, rf"\A{_DAY}\z"),
)
_SORTABLE = r"\A(o|p[0-9]{3}\.[1-9]([0-9]*[1-9])?|n[0-9]{3}\.[0-8]([0-9]*[0-8])?~)\z"


def part_text(template: Template, name: str, key: ir.StringValue) -> ir.StringValue:
    """The text of a part of keys that match: spelled plainly, and quoted as in the key."""
    part = next(each for each in template.parts if each.name == name)
    return _plain(part, template.quoting, _raw(template, part, key))


def _raw(template: Template, part: Part, key: ir.StringValue) -> ir.StringValue:
    """The text of a part as it stands in the key."""
    if template.is_tail:
        return _rest(template, key)
    return key.re_extract(_pattern(template), template.parts.index(part) + 1)


def _rest(template: Template, key: ir.StringValue) -> ir.StringValue:
    return key.substr(len(template.lead))


def _pattern(template: Template) -> str:
    inside = _inside(template.quoting)
    pieces = (escaped(piece) if isinstance(piece, str) else f"({inside})" for piece in template.pieces)
    return rf"\A{''.join(pieces)}\z"


def _taboo(quoting: Quoting) -> str:
    """The pattern of a character that an escaping layout quotes."""
    return rf"[\x00-%{''.join(escaped(end) for end in sorted(quoting.ends) if end > '%')}]"


def _inside(quoting: Quoting) -> str:
    """The pattern of what a part may be; `layouts.keys.Quoting.inside` in words that every engine reads."""
    if not quoting.escape:
        return f"[^{''.join(escaped(end) for end in sorted(quoting.ends))}]*"
    codes = "".join(f"|{ord(end):02X}" for end in sorted(quoting.ends) if end > "%")
    return f"(?:[^{_taboo(quoting)[1:]}|%(?:[01][0-9A-F]|2[0-5]{codes}))*"


def escaped(text: str) -> str:
    """Text that a pattern takes for itself; characters that are no sign in any dialect are left alone."""
    return re.sub(r"([\\^$.|?*+()\[\]{}\-&~])", r"\\\1", text)


def _plain(part: Part, quoting: Quoting, text: ir.StringValue) -> ir.StringValue:
    if not part.transform.name:
        return text
    if quoting.ends & _IN_NUMBERS:
        text = unquoted(quoting, text)
    if part.transform.name == "sortable":
        return _unsorted(text)
    if part.transform.name.startswith("0"):
        return ibis.ifelse(text.re_search(r"\A0*\z"), "0", text.re_replace(r"\A0+", ""))
    return text


def unquoted(quoting: Quoting, text: ir.StringValue) -> ir.StringValue:
    """The text behind a quoted one."""
    if not quoting.escape:
        return text
    found = text
    characters = [chr(code) for code in range(0x26)] + [end for end in quoting.ends if end > "%"]
    for character in characters:
        if character != "%":
            plain = _character(0) if character == "\0" else ibis.literal(character)
            found = found.replace(f"%{ord(character):02X}", plain)
    # The escape itself comes last: what it stands before is no escape then.
    return ibis.ifelse(text.contains("%"), found.replace("%25", "%"), text)


def _unsorted(text: ir.StringValue) -> ir.StringValue:
    """The plain spelling of a sortable number; `layouts.keys.unsorted_text` as an expression."""
    is_negative = text.startswith("n")
    power = text.substr(1, 3).try_cast("int64")
    digits = text.substr(5)
    digits = ibis.ifelse(is_negative, digits.substr(0, digits.length() - 1).translate(_DIGITS, _COMPLEMENT), digits)
    power = ibis.ifelse(is_negative, 999 - power, power) - _BIAS
    length = digits.length()
    zeros = ibis.literal("0")
    whole = digits + zeros.repeat(ibis.greatest(power - length, 0))
    below = ibis.literal("0.") + zeros.repeat(ibis.greatest(-power, 0)) + digits
    split = digits.substr(0, ibis.greatest(power, 0)) + "." + digits.substr(ibis.greatest(power, 0))
    spelled = ibis.cases((power >= length, whole), (power <= 0, below), else_=split)
    signed = ibis.ifelse(is_negative, ibis.literal("-") + spelled, spelled)
    return ibis.cases((text == "o", "0"), (text.re_search(r"\A(p\d{3}\.\d+|n\d{3}\.\d+~)\z"), signed), else_=text)


def key_parts(layout: BoundLayout, kind: EdgeType, sort: ir.StringValue) -> dict[str, ir.StringValue]:
    """What tells edges between one pair apart, by their sort keys; both halves of a symmetric edge have the same."""
    template = layout.key_templates(kind).sort
    told = [part.name for part in template.parts if part.name in layout.key_fields(kind)]
    return {f"k{place}": part_text(template, name, sort) for place, name in enumerate(told)}
