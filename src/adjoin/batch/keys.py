"""Keys of whole columns: which of them match a template, and their parts, as Ibis expressions.

They do in an engine, for a whole column, what `layouts.keys.Template.match` does for one key. Patterns are written so
that RE2 (DuckDB) and Java (Spark) read them alike.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Iterable, Sequence, Set
from decimal import Decimal
from enum import Enum
from functools import reduce
from typing import Any

import ibis
import ibis.expr.types as ir

from adjoin.entity_types import CountedType, EdgeType, EntityType, NodeType
from adjoin.field_types import plain_type
from adjoin.formats import EPOCHS, DateFormat, EpochFormat, Format, date_format
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.key_values import key_text, spellings
from adjoin.layouts.keys import SEPARATOR, Part, Quoting, Template
from adjoin.layouts.template_texts import JOINT
from adjoin.values import MAX_EXPONENT, MIN_EXPONENT

_DIGITS, _COMPLEMENT = "0123456789", "9876543210"
_BIAS = 500
_SIGNS = frozenset("0123456789abcdefTZopn-.:~")
"""All characters of numbers, dates and UUIDs, as keys write them. A text with another quoted character is none."""
_IN_DATES = frozenset(chr(code) for code in range(0x25))
"""Characters that a date format may have, and that a layout with escapes quotes."""
_IN_NUMBERS = frozenset(".~")
"""Characters of sortable numbers. If a layout uses one as the end of a part, it is quoted inside parts."""


@ibis.udf.scalar.builtin(name="chr")
def _character(code: int) -> str:
    """The character of a code point. It is needed for NUL, which cannot be written into a statement."""
    raise NotImplementedError  # the engine's own function is called


def matches(template: Template, key: ir.StringValue) -> ir.BooleanValue:
    """Whether a key matches the template."""
    if not template.parts:
        return key == str(template)
    if template.type != "S":
        return _is_value(template.parts[0], key)
    if template.is_tail and not template.quoting.escape:
        holds = key.startswith(template.lead)
        for end in sorted(template.quoting.ends):
            holds &= ~_rest(template, key).contains(end)
    elif template.is_tail:
        # Most ids contain nothing that is quoted, and then one fast search is enough.
        rest = _rest(template, key)
        plain = ~rest.re_search(_taboo(template.quoting))
        holds = key.startswith(template.lead) & (plain | rest.re_search(rf"\A{_inside(template.quoting)}\z"))
    else:
        holds = key.re_search(_pattern(template))
    for part in template.parts:
        holds &= _is_spelled(template, part, key)
    whole = {part.name: part for part in template.parts if part.transform.decode}
    for part in template.parts:
        if part.transform.decode is None and part.name in whole:
            holds &= is_echo(template, part, key, _plain_text(template, whole[part.name], key))
    parts = [(place, part) for place, part in enumerate(template.parts) if part.transform.decode]
    for place, part in parts:
        first = next(at for at, each in parts if each.name == part.name)
        if first != place:
            texts = [
                _plain(template.parts[at], template.quoting, key.re_extract(_pattern(template), at + 1))
                for at in (first, place)
            ]
            holds &= texts[0] == texts[1]
    return holds


def _is_value(part: Part, key: ir.StringValue) -> ir.BooleanValue:
    """Whether a key that is a number or binary is a value of its part."""
    plain = part.plain or str
    if issubclass(plain, bytes):
        return key != ""
    if issubclass(plain, uuid.UUID):
        return key.re_search(_BINARY_UUID)
    if isinstance(part.transform.format, EpochFormat):
        unit = dt.timedelta(seconds=1) // EPOCHS[part.transform.format.name][0]
        number, (first, last) = key.try_cast("int64"), _ALL_SECONDS
        in_range = number.between(first * unit, last * unit + unit - 1)
        return (key.re_search(_spelling(int)) & in_range & _after_bounds(part, number, unit)).fill_null(False)
    if issubclass(plain, dt.datetime):
        second = key.re_extract(_SECONDS, 1).try_cast("int64")
        in_range = second.between(*_ALL_SECONDS) & _after_bounds(part, key.try_cast("decimal(38, 6)"), 1)
        return (key.re_search(_SECONDS) & in_range).fill_null(False)
    return _within(part, key, key.re_search(_spelling(plain)))


def _is_spelled(template: Template, part: Part, key: ir.StringValue) -> ir.BooleanValue:
    """Whether a part of a matching key is written as a value of its type; see `layouts.keys.Part.is_spelled`."""
    text = _raw(template, part, key)
    holds: ir.BooleanValue = text != "" if part.is_id else ibis.literal(True)
    name = part.transform.name
    if part.transform.decode is None or (not name and part.plain in (None, str)):
        return holds
    text = unquoted(template.quoting, text, _SIGNS if part.transform.format is None else _SIGNS | _IN_DATES)
    if name == "sortable":
        power = text.substr(1, 3).try_cast("int64")
        power = ibis.ifelse(text.startswith("n"), 999 - power, power)
        in_range = (power > _BIAS + MIN_EXPONENT) & (power <= _BIAS + MAX_EXPONENT + 1)
        holds &= text.re_search(_SORTABLE) & ((text == "o") | in_range)
    elif part.transform.format is not None:
        holds &= text.re_search(rf"\A{_written(part.transform.format)}\z")
    elif name:
        holds &= text.re_search(rf"\A[0-9]{{{int(name.rstrip('d'))}}}\z")
    plain = _plain(part, template.quoting, _raw(template, part, key))
    kind = part.plain or part.transform.numbers or str
    plain = unquoted(template.quoting, plain, None if issubclass(kind, Enum) else _SIGNS)
    if issubclass(kind, dt.date):
        # The pattern accepts day 31 in every month; the cast does not.
        holds &= plain.substr(0, 10).try_cast("date").notnull()
    return _within(part, plain, holds & plain.re_search(_spelling(kind)))


def _within(part: Part, text: ir.StringValue, holds: ir.BooleanValue) -> ir.BooleanValue:
    """What holds, and that a whole number or a moment is within the bounds of its part."""
    if part.least is None and part.most is None:
        return holds
    if part.plain is not int:
        # Moments in UTC, whose spellings sort as they do.
        holds &= ibis.literal(True) if part.least is None else text >= key_text(part.least)
        return holds if part.most is None else holds & (text <= key_text(part.most))
    # A number of more digits than the engine holds is beyond every bound that it holds.
    beyond = ibis.ifelse(text.startswith("-"), _whole(-_GREATEST), _whole(_GREATEST))
    number = text.try_cast(_WHOLE).fill_null(beyond)
    if part.least is not None:
        holds &= number >= _whole(part.least)
    if part.most is not None:
        holds &= number <= _whole(part.most)
    return holds


def _after_bounds(part: Part, number: ir.NumericValue, unit: int) -> ir.BooleanValue:
    """Whether a moment is within the bounds of its part, as the number of units of time since 1970."""
    holds: ir.BooleanValue = ibis.literal(True)
    for bound, is_least in ((part.least, True), (part.most, False)):
        if bound is not None:
            units = Decimal((bound - _SINCE) // dt.timedelta(microseconds=1)) * unit / 1_000_000
            holds &= number >= units if is_least else number <= units
    return holds


_SINCE = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_WHOLE, _GREATEST = "decimal(38, 0)", 10**38 - 1


def _whole(number: int) -> ir.Scalar:
    return ibis.literal(Decimal(max(-_GREATEST, min(number, _GREATEST))), _WHOLE)


def _spelling(plain: type) -> str:
    """The pattern of values of a type, as keys write them."""
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
_SECONDS = r"\A(0|-?[1-9][0-9]*|-?0)(\.[0-9]{0,5}[1-9])?\z"
"""The pattern of a datetime as the seconds since 1970, with at most six digits after the point."""
_ALL_SECONDS = (-62135596800, 253402300799)
"""The seconds from the year 1 to the year 9999."""
_BINARY_UUID = r"\A[A-Za-z0-9+/]{21}[AQgw]==\z"
_SORTABLE = r"\A(o|p[0-9]{3}\.[1-9]([0-9]*[1-9])?|n[0-9]{3}\.[0-8]([0-9]*[0-8])?~)\z"


def part_text(template: Template, name: str, key: ir.StringValue) -> ir.StringValue:
    """The text of a part of a matching key: without its transform, and quoted as in the key."""
    named = [part for part in template.parts if part.name == name]
    part = next((each for each in named if each.transform.decode), named[0])
    return _plain_text(template, part, key)


def _plain_text(template: Template, part: Part, key: ir.StringValue) -> ir.StringValue:
    return _plain(part, template.quoting, _raw(template, part, key))


def is_echo(template: Template, part: Part, key: ir.StringValue, text: ir.StringValue) -> ir.BooleanValue:
    """Whether a part holds of a value what it should, such as the day of a time; `text` is the whole value.

    Engines spell no other formats than those of fixed widths, so others are believed.
    """
    format = date_format(part.transform.name, part.plain or str)
    if format is None:
        return ibis.literal(True)
    names = iter(format.parts)
    found: Any = ibis.literal("")
    for piece in format.literals:
        found += text.substr(*_IN_MOMENTS[next(names)]) if format.is_part(piece) else ibis.literal(piece)
    return found == unquoted(template.quoting, _raw(template, part, key), _SIGNS | _IN_DATES)


_IN_MOMENTS = {
    "year": (0, 4),
    "month": (5, 2),
    "day": (8, 2),
    "hour": (11, 2),
    "minute": (14, 2),
    "second": (17, 2),
    "millisecond": (20, 3),
    "microsecond": (20, 6),
}
"""Where the parts of a time are in its plain text."""


def _raw(template: Template, part: Part, key: ir.StringValue) -> ir.StringValue:
    """The text of a part exactly as in the key."""
    if template.type != "S":
        return key
    if template.is_tail:
        return _rest(template, key)
    return key.re_extract(_pattern(template), template.parts.index(part) + 1)


def derived(template: Template, places: Sequence[tuple[Template, ir.StringValue]]) -> ir.StringValue | None:
    """The key that a template makes of parts of other keys; None if these do not have all its parts as they are."""
    found: Any = ibis.literal("")
    for piece in template.pieces:
        if isinstance(piece, str):
            found += ibis.literal(piece)
            continue
        raw = next(
            (
                _raw(other, part, key)
                for other, key in places
                for part in other.parts
                if part.name == piece.name and part.transform.name == piece.transform.name and not part.among
            ),
            None,
        )
        if raw is None or piece.among:
            return None
        found += raw
    return None if template.type != "S" else found


def _rest(template: Template, key: ir.StringValue) -> ir.StringValue:
    return key.substr(len(template.lead))


def _pattern(template: Template) -> str:
    pieces = (escaped(each) if isinstance(each, str) else f"({_part(template, each)})" for each in template.pieces)
    return rf"\A{''.join(pieces)}\z"


def _part(template: Template, part: Part) -> str:
    """The pattern of the text of a part."""
    return _inside(template.quoting).join(["", *map(escaped, template.held(part)), ""])


def _taboo(quoting: Quoting) -> str:
    """The pattern of a character that a layout with escapes quotes."""
    return rf"[\x00-%{''.join(escaped(end) for end in sorted(quoting.ends) if end > '%')}]"


def _inside(quoting: Quoting) -> str:
    """The pattern of the text of a part: `layouts.keys.Quoting.inside` in a form that all engines read."""
    if not quoting.ends:
        return "(?s:.*)"
    if not quoting.escape:
        return f"[^{''.join(escaped(end) for end in sorted(quoting.ends))}]*"
    codes = "".join(f"|{ord(end):02X}" for end in sorted(quoting.ends) if end > "%")
    return f"(?:[^{_taboo(quoting)[1:]}|%(?:[01][0-9A-F]|2[0-5]{codes}))*"


def escaped(text: str) -> str:
    """Text escaped for a pattern. Characters without a meaning in any dialect stay as they are."""
    return re.sub(r"([\\^$.|?*+()\[\]{}\-&~])", r"\\\1", text)


def _plain(part: Part, quoting: Quoting, text: ir.StringValue) -> ir.StringValue:
    if not part.transform.name:
        return text
    if quoting.ends & _IN_NUMBERS:
        text = unquoted(quoting, text, _SIGNS)
    if part.transform.name == "sortable":
        return _unsorted(text)
    if part.transform.format is not None:
        return _moment(part.transform.format, unquoted(quoting, text, _SIGNS | _IN_DATES))
    if part.transform.name.startswith("0"):
        return ibis.ifelse(text.re_search(r"\A0*\z"), "0", text.re_replace(r"\A0+", ""))
    return text


def _written(format: Format) -> str:
    """The pattern of what a format writes. Whether a day exists is decided by its plain text."""
    if isinstance(format, DateFormat):
        widths = [format.places[name][1] for name in format.parts]
        numbers = iter([f"[0-9]{{{width}}}" for width in widths])
        return "".join(next(numbers) if format.is_part(piece) else escaped(piece) for piece in format.literals)
    return rf"[1-9][0-9]{{{EPOCHS[format.name][1] - 1}}}"


def _moment(format: Format, text: ir.StringValue) -> ir.StringValue:
    """A date in a format, as keys write dates without one: `layouts.keys.key_text` of its value."""
    if isinstance(format, DateFormat):
        found = {name: text.substr(at, width) for name, (at, width) in format.places.items()}
        day = found["year"] + "-" + found.get("month", ibis.literal("01")) + "-" + found.get("day", ibis.literal("01"))
        if format.plain is dt.date:
            return day
        zeros = ibis.literal("00")
        time = found.get("hour", zeros) + ":" + found.get("minute", zeros) + ":" + found.get("second", zeros)
        milliseconds = found["millisecond"] + "000" if "millisecond" in found else ibis.literal("000000")
        parts = found.get("microsecond", milliseconds)
        return day + "T" + time + "." + parts + ("Z" if format.has_zone else "")
    is_seconds = format.name == "epoch"
    number = (text if is_seconds else text.substr(0, 10)).try_cast("int64")
    parts = ibis.literal("000") if is_seconds else text.substr(10, 3)
    # Both engines write times in UTC here: ibis sets the time zone of their sessions.
    return number.as_timestamp("s").strftime("%Y-%m-%dT%H:%M:%S") + "." + parts + "000Z"


def unquoted(quoting: Quoting, text: ir.StringValue, signs: Set[str] | None = None) -> ir.StringValue:
    """The text without its quoting; if `signs` are given, only of these characters.

    Each character is a call of its own. Spark optimizes trees: it repeats all of them wherever the text is used.
    """
    if not quoting.escape:
        return text
    characters = [chr(code) for code in range(0x26)] + [end for end in quoting.ends if end > "%"]
    found = text
    for character in characters:
        if character != "%" and (signs is None or character in signs):
            plain = _character(0) if character == "\0" else ibis.literal(character)
            found = found.replace(f"%{ord(character):02X}", plain)
    if signs is not None:
        return found
    # The escape character itself comes last: otherwise "%2523" would become "#" instead of "%23".
    return ibis.ifelse(text.contains("%"), found.replace("%25", "%"), text)


def quoted(quoting: Quoting, text: ir.StringValue) -> ir.StringValue:
    """The text as a layout with escapes quotes it: `layouts.keys.Quoting.quote` as an expression."""
    found = text.replace("%", "%25")
    for character in [chr(code) for code in range(0x25)] + sorted(end for end in quoting.ends if end > "%"):
        plain = _character(0) if character == "\0" else ibis.literal(character)
        found = found.replace(plain, f"%{ord(character):02X}")
    return ibis.ifelse(text.re_search(_taboo(quoting)), found, text)


def _unsorted(text: ir.StringValue) -> ir.StringValue:
    """The plain text of a sortable number: `layouts.keys.unsorted_text` as an expression."""
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
    """The parts of the sort key that distinguish edges between the same two nodes.

    Both items of a symmetric edge have the same.
    """
    template = layout.key_templates(kind).sort
    names = [part.name for part in template.parts if part.name in layout.key_fields(kind)]
    return {f"k{place}": part_text(template, name, sort) for place, name in enumerate(names)}


def id_text(kind: NodeType, side: str, places: Iterable[tuple[Template, ir.StringValue]]) -> ir.StringValue:
    """The text of an id in some keys that match their templates; `side` precedes the names of its parts."""
    told = {name: (template, key) for template, key in reversed(list(places)) for name in template.told}
    return id_of_texts([part_text(told[side + name][0], side + name, told[side + name][1]) for name in kind.parts])


def node_template(layout: BoundLayout, kind: NodeType) -> Template:
    """The template of the node keys of a class."""
    template = layout.key_templates(kind).text
    assert template is not None
    return template


def partition_in(layout: BoundLayout, kind: NodeType, text: Any) -> Any:
    """The partition key in a node key of a class whose nodes share partitions, or null; None for other classes."""
    templates = layout.key_templates(kind)
    if not templates.is_shared:
        return None
    pieces = templates.partition.pieces
    partition = "".join(escaped(each) if isinstance(each, str) else _part(templates.partition, each) for each in pieces)
    found = text.re_extract(rf"\A({partition}){escaped(JOINT)}", 1)
    return ibis.ifelse(matches(node_template(layout, kind), text), found, ibis.null("string"))


def source_text(layout: BoundLayout, kind: CountedType, partition: Any, sort: Any) -> ir.StringValue:
    """The text of the id of an edge's source, or of a child's parent, from the keys of the edge or child."""
    templates = layout.key_templates(kind)
    side = "parent." if isinstance(kind, NodeType) else "source."
    return id_text(kind.source, side, [(templates.partition, partition), (templates.sort, sort)])


def id_of_texts(texts: list[ir.StringValue]) -> Any:
    """The text of an id: that of its only part, or those of all parts with the separator, which is in none of them."""
    if not texts:
        return ibis.literal("")
    return reduce(lambda text, each: text + SEPARATOR + each, texts)


def field_text(kind: EntityType, name: str, template: Template, key: ir.StringValue) -> Any:
    """A field in a key, written as an attribute would be."""
    plain = plain_type(kind.fields[name])
    is_text = plain is None or issubclass(plain, str | Enum)
    text: Any = unquoted(template.quoting, part_text(template, name, key), None if is_text else _SIGNS)
    if plain is not None and issubclass(plain, dt.datetime):
        # Keys have all digits of a second, so that they sort, and "Z" for UTC.
        return text.replace(".000000", "").replace("Z", "+00:00")
    return text
