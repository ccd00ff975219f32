"""Key templates as Ibis expressions: which keys are of a template, and what their parts say.

What `layouts.keys.Template.match` does to one key, these do to a column of them, inside an engine. Patterns
are written so that RE2 (DuckDB) and Java (Spark) read them alike.
"""

from __future__ import annotations

import re

import ibis
import ibis.expr.types as ir

from adjoin.layouts.interface import BoundLayout
from adjoin.layouts.keys import Part, Quoting, Template
from adjoin.schema import EdgeType

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
    if template.is_tail:
        rest = _rest(template, key)
        holds = key.startswith(template.lead)
        for end in sorted(template.quoting.ends):
            holds &= ~rest.contains(end)
        return holds
    if not template.parts:
        return key == str(template)
    return key.re_search(_pattern(template))


def part_text(template: Template, name: str, key: ir.StringValue) -> ir.StringValue:
    """The text of a part of keys that match: spelled plainly, and quoted as in the key."""
    part = next(each for each in template.parts if each.name == name)
    if template.is_tail:
        text = _rest(template, key)
    else:
        text = key.re_extract(_pattern(template), template.parts.index(part) + 1)
    return _plain(part, template.quoting, text)


def _rest(template: Template, key: ir.StringValue) -> ir.StringValue:
    return key.substr(len(template.lead))


def _pattern(template: Template) -> str:
    ends = "".join(escaped(end) for end in sorted(template.quoting.ends))
    pieces = (escaped(piece) if isinstance(piece, str) else f"([^{ends}]*)" for piece in template.pieces)
    return rf"\A{''.join(pieces)}\z"


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
