"""Key templates: readable, reversible and safe.

A template such as "HOME#{country}#{city:upper}" is compiled for one class into literals and parts. It renders values
into a key, and matches a key back into the texts of its parts. A key is never ambiguous, because no part contains a
character that ends a part: an escaping layout percent-encodes such characters, and a literal layout, for tables that
other programs write too, refuses values that have one. Dates and UUIDs have such characters at fixed places, where they
end nothing: "{day}-{id}" is unambiguous, because a day always has two hyphens.

Percent-encoding covers every character up to "%" (controls, space, !, ", #, $), not only the separator. So "%" sorts
after the separator "#" and before everything that is not encoded, and the order of encoded values is the order of the
values.

Each value has exactly one spelling. A key with another spelling ("%41" for "A", "01" for 1) matches no template, so
that an id has one key, and a key has one id. An id is never empty.

Pure functions over text and values; no classes, no items.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
import string
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.errors import AdjoinError, InvalidKey, InvalidModel, InvalidValue, shown
from adjoin.formats import date_format
from adjoin.layouts.key_values import LONGEST_PLAIN, Transform, transform, value_of
from adjoin.tables import KeyType
from adjoin.values import AttributeValue, canonical_number

SEPARATOR = "#"

# --- templates ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alternative:
    """One of the ways to spell a part: the key of a node of one class, at an end where several classes can be."""

    name: str
    """The name of the class, for messages."""
    pieces: tuple[str | Part, ...]
    values: Callable[[Any], Mapping[str, Any] | None] = field(compare=False)
    """The values of the parts of a value that is spelled so; None for a value that is not."""
    value: Callable[[Mapping[str, Any]], Any] = field(compare=False)
    """The value from the texts of the parts; None if there is none."""


@dataclass(frozen=True, slots=True)
class Part:
    """A placeholder of a template, which a value fills."""

    name: str
    transform: Transform
    plain: type | None = None
    """The type of its values, if it is known."""
    is_id: bool = False
    """Whether it is an id, or part of one, and so never empty."""
    among: tuple[Alternative, ...] = ()
    """For a node of one of several classes, how the key of each class is spelled."""
    least: Any = field(default=None, compare=False)
    most: Any = field(default=None, compare=False)
    """For a whole number or a moment with bounds, its least and its greatest value: others are not of this part."""

    def holds(self, value: Any) -> bool:
        """Whether a value is within the bounds. A moment without a time zone cannot be compared with them."""
        if isinstance(value, dt.datetime) and value.tzinfo is None:
            return True
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def held(self, ends: Collection[str]) -> str:
        """The characters among `ends` that every text of this part has, in order: "--" for a date among hyphens.

        It is "" if texts have none, or if they have different ones.
        """
        name, plain = self.transform.name, self.plain
        if plain is None or not issubclass(plain, dt.date | uuid.UUID):
            return ""
        if format := date_format(name, plain) if "%" in name else None:
            constant = "".join(piece for piece in format.literals if not format.is_part(piece))
            varying = string.digits
        else:
            found = (frame for kind, frame in _FRAMES if issubclass(plain, kind))
            constant, varying = next(found) if not name else ("", "")
        # If a separator is among the characters that differ from text to text, it has no fixed place.
        return "" if not {*ends}.isdisjoint(varying) else "".join(each for each in constant if each in ends)

    @property
    def is_date(self) -> bool:
        """Whether every text of this part begins with the digits of a date."""
        if self.plain is None or not issubclass(self.plain, dt.date):
            return False
        if "%" not in self.transform.name:
            return not self.transform.name
        format = date_format(self.transform.name, self.plain)
        return format is not None and format.is_part(format.pieces[0])

    def is_spelled(self, text: str) -> bool:
        """Whether this is the one spelling of a value of this part."""
        if not text and self.is_id:
            return False
        decode, is_plain = self.transform.decode, not self.transform.name
        if decode is None or (is_plain and (self.plain is str or self.plain is None)):
            return True
        try:
            if is_plain and self.plain is int:
                return str(int(text)) == text and self.holds(int(text))
            value = value_of(self.plain or self.transform.numbers, decode(text))
            is_bounded = self.least is not None or self.most is not None
            if value is None or (is_bounded and not self.holds(value)):
                return False
            return self.transform.encode(value) == text
        except (AdjoinError, ValueError, ArithmeticError):
            return False


_FRAMES: tuple[tuple[type, tuple[str, str]], ...] = (
    (uuid.UUID, ("----", string.digits + "abcdef")),
    (dt.datetime, ("--T::.", string.digits + "Z")),
    (dt.date, ("--", string.digits)),
)
"""The characters that all texts of a type have, in order, and those that differ."""


def parse_template(template: str) -> list[str | Part]:
    """The literals and parts of a template's text."""
    pieces: list[str | Part] = []
    try:
        for literal, name, spec, _ in string.Formatter().parse(template):
            if literal:
                pieces.append(literal)
            if name is not None:
                pieces.append(Part(name, transform(spec or "")))
    except ValueError as error:
        raise InvalidModel(f"the key template {template!r} cannot be read: {error}") from None
    return pieces


def delimiters(templates: Iterable[list[str | Part]]) -> frozenset[str]:
    """The characters that end a part somewhere in these templates."""
    # Keys of adjoin's own items separate their parts by it, in every layout.
    found = {SEPARATOR}
    for pieces in templates:
        for piece, following in itertools.pairwise(pieces):
            if isinstance(piece, Part) and isinstance(following, str):
                found.add(following[0])
    return frozenset(found)


class Quoting:
    """Escapes or refuses characters that would end a part of a key. Without such characters, any text is as it is."""

    def __init__(self, ends: frozenset[str], *, escape: bool) -> None:
        self.ends = ends
        self.escape = escape
        also = "".join(re.escape(end) for end in sorted(ends) if end > "%")
        taboo = "[" + re.escape("".join(sorted(ends))) + "]" if ends else "(?!)"
        # Everything up to % is escaped, not only separators. So a separator sorts before each character with which a
        # longer text can go on, and keys sort as their values do.
        self._taboo = re.compile(f"[\x00-%{also}]" if escape else taboo)
        self.special = self._taboo.search
        """Searches a text, from a position on, for a character that is escaped or ends a part."""
        self.inside = "[^" + re.escape("".join(sorted(ends))) + "]*" if ends else ".*"
        """The pattern of the text of a part: it matches only what `quote` produces."""
        if escape:
            codes = "".join(f"|{ord(end):02X}" for end in sorted(ends) if end > "%")
            self.inside = f"(?:[^\\x00-%{also}]|%(?:[01][0-9A-F]|2[0-5]{codes}))*"
        self._whole = re.compile(self.inside, re.DOTALL)

    def quote(self, text: str) -> str:
        if self._taboo.search(text) is None:
            return text
        if self.escape:
            return self._taboo.sub(lambda found: f"%{ord(found[0]):02X}", text)
        ends = " or ".join(map(repr, sorted(self.ends)))
        raise InvalidKey(
            f"{text!r} holds {ends}, which separates the parts of this layout's keys; "
            f"choose another value, or give the layout escape=True"
        )

    def is_quoted(self, text: str) -> bool:
        """Whether `quote` can have produced a text."""
        return self._taboo.search(text) is None or (self.escape and self._whole.fullmatch(text) is not None)

    def unquote(self, text: str) -> str:
        if not self.escape or "%" not in text:
            return text
        return re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)


SHARD = "shard"
"""The placeholder of a shard's number."""


class Template:
    """A template compiled for one class."""

    def __init__(
        self, owner: str, pieces: list[str | Part], quoting: Quoting, type: KeyType = "S", *, repeats: bool = False
    ) -> None:
        """`repeats` allows a field twice; a key matches only if it has the same value in both places."""
        self.owner = owner
        self.pieces = _merged(pieces)
        self.parts = tuple(piece for piece in self.pieces if isinstance(piece, Part))
        self.quoting = quoting
        self.type = type
        """The type of the key attribute. A number is written as DynamoDB spells it."""
        self.names = tuple(part.name for part in self.parts)
        """The values that a key is made of."""
        for piece, following in itertools.pairwise(self.pieces):
            if isinstance(piece, Part) and isinstance(following, Part):
                raise InvalidModel(
                    f"in a key of {owner}, nothing separates {{{piece.name}}} from {{{following.name}}}; "
                    f"put a separator such as '#' between them"
                )
        whole = [part.name for part in self.parts if part.transform.decode]
        self._echoes = tuple(part for part in self.parts if not part.transform.decode and part.name in whole)
        """The parts that hold less of a value which another part holds whole."""
        if len({*self.names}) + len(self._echoes) < len(self.names) and not repeats:
            raise InvalidModel(f"a key of {owner} names a field twice: {self}")
        self.lead = self.pieces[0] if self.pieces and isinstance(self.pieces[0], str) else ""
        """The literal with which every key of this template begins."""
        self._spellings = {
            part.name: [(each, Template(owner, [*each.pieces], quoting, repeats=True)) for each in part.among]
            for part in self.parts
            if part.among
        }
        """For each part that is a node of one of several classes, the templates of their keys."""
        held = {(part.name, part.transform.name): part.held(quoting.ends) for part in self.parts}
        self._held = {} if quoting.escape else {part: ends for part, ends in held.items() if ends}
        """The characters that end parts elsewhere, and that the texts of a part have at fixed places."""
        self._pattern = re.compile(
            "".join(
                re.escape(piece) if isinstance(piece, str) else f"({self._inside(piece)})" for piece in self.pieces
            ),
            re.DOTALL,
        )
        self.is_tail = len(self.pieces) == 2 and isinstance(self.pieces[1], Part) and bool(self.lead)
        self.is_tail = self.is_tail and not self._spellings and not self._held
        """Whether it is one literal and one part: the most frequent shape, which needs no regular expression."""
        is_plain = self.is_tail and not self.parts[0].transform.name
        self._plain = (self.parts[0].name, quoting.special) if is_plain else None
        """The only part and what it must not contain, if text that needs no quoting is written as it is."""
        self._steps = tuple((piece, self._as_it_is(piece)) for piece in self.pieces)
        """The pieces, and for parts whose text is written as it is unless it needs quoting, what finds that out."""
        only = self.parts[0] if is_plain else None
        self._is_text = only is not None and only.plain is str
        self._is_whole = only is not None and only.plain is int and only.least is None and only.most is None
        """Whether the only part is any text, or any whole number."""

    def __str__(self) -> str:
        return "".join(piece if isinstance(piece, str) else f"{{{piece.name}}}" for piece in self.pieces)

    @property
    def with_transforms(self) -> str:
        """The template with its transforms, for messages."""
        return "".join(
            piece if isinstance(piece, str) else f"{{{':'.join(filter(None, (piece.name, piece.transform.name)))}}}"
            for piece in self.pieces
        )

    def _inside(self, part: Part) -> str:
        """The pattern of the text of a part."""
        if part.among:
            return "|".join(each._ungrouped for _, each in self._spellings[part.name])
        return self.quoting.inside.join(["", *map(re.escape, self.held(part)), ""])

    def held(self, part: Part) -> str:
        """The characters that end parts elsewhere, and that every text of this part has, in order."""
        return self._held.get((part.name, part.transform.name), "") if self._held else ""

    @property
    def _ungrouped(self) -> str:
        pieces = (re.escape(each) if isinstance(each, str) else f"(?:{self._inside(each)})" for each in self.pieces)
        return "".join(pieces)

    @cached_property
    def spelled_out(self) -> tuple[tuple[tuple[str, ...], Template], ...]:
        """The templates in which each node of several classes is of one class, with the names of these classes."""
        parts = [part for part in self.parts if part.among]
        found = []
        for chosen in itertools.product(*(part.among for part in parts)):
            names = {part.name: each.name for part, each in zip(parts, chosen, strict=True)}
            found.append((tuple(names.values()), self.chosen(names)))
        return tuple(found)

    def chosen(self, classes: Mapping[str, str]) -> Template:
        """The template in which nodes of several classes are of these classes, given by the names of the parts."""
        if not self._spellings:
            return self
        pieces: list[str | Part] = []
        for piece in self.pieces:
            if isinstance(piece, str) or not piece.among:
                pieces.append(piece)
                continue
            own = next(each for each in piece.among if each.name == classes[piece.name])
            side = piece.name.rpartition(".")[0]
            pieces += [
                replace(each, name=f"{side}.{each.name}") if isinstance(each, Part) else each for each in own.pieces
            ]
        return Template(self.owner, pieces, self.quoting, self.type, repeats=True)

    @property
    def is_mixed(self) -> bool:
        """Whether a part is a node of one of several classes. Classes that are not in the graph may be there too."""
        return bool(self._spellings)

    @property
    def told(self) -> set[str]:
        """The parts whose values can be read back from a key."""
        return {part.name for part in self.parts if part.transform.decode and part.name != SHARD}

    @property
    def only_part(self) -> str | None:
        """The part behind the lead, if there is nothing else, and text that needs no quoting is written as it is."""
        return None if self._plain is None else self._plain[0]

    def value(self, values: Mapping[str, Any]) -> AttributeValue:
        """The key as an attribute."""
        return self.attribute(self.render(values))

    def attribute(self, text: str) -> AttributeValue:
        if self.type == "N":
            try:
                return {"N": canonical_number(text)}
            except AdjoinError:
                raise InvalidKey(
                    f"the key {self} of {self.owner} is a number in the table, and {text!r} is not one"
                ) from None
        return {self.type: text}

    def render(self, values: Mapping[str, Any]) -> str:
        if self._plain is not None:
            name, special = self._plain
            value = values[name]
            # Most ids are short texts or whole numbers; for these, the functions below would only cost time.
            if type(value) is str:
                if value and value.isascii() and special(value) is None:
                    return self.lead + value
            elif type(value) is int and -LONGEST_PLAIN < value < LONGEST_PLAIN and special(text := str(value)) is None:
                return self.lead + text
        if self.is_tail:
            return self.lead + self._filled(self.parts[0], values)
        if not self.parts:
            return self.lead
        texts = []
        for piece, needs_quoting in self._steps:
            if isinstance(piece, str):
                texts.append(piece)
                continue
            if needs_quoting is not None:
                value = values[piece.name]
                if type(value) is str and value and value.isascii() and needs_quoting(value) is None:
                    texts.append(value)
                    continue
            texts.append(self._filled(piece, values))
        return "".join(texts)

    def _as_it_is(self, piece: str | Part) -> Callable[[str], Any] | None:
        if isinstance(piece, str) or piece.among or piece.transform.name or self.held(piece):
            return None
        return self.quoting.special

    def _filled(self, part: Part, values: Mapping[str, Any]) -> str:
        text = self.text(part, values[part.name])
        if not text and part.is_id:
            raise InvalidKey(
                f"{self.owner}.{part.name} is empty, but an id in a key needs at least one character; give it one"
            )
        return text

    def prefix(self, part: Part, start: Any) -> str:
        """The quoted prefix of the texts of a part whose values begin with `start`."""
        self.refuse_node(part)
        if part.transform.prefix is None:
            raise InvalidValue(
                f"{self.owner}.{part.name} is encoded in the key so that it sorts, and that encoding has no "
                f"prefixes; use between instead"
            )
        text = part.transform.prefix(start)
        return text if self.held(part) else self.quoting.quote(text)

    def refuse_node(self, part: Part) -> None:
        """Raises for a part that is a node of one of several classes, whose keys have no order or prefix in common."""
        if part.among:
            raise InvalidValue(
                f"{self.owner}.{part.name} is a node of one of several classes, so there is no range of it; narrow the "
                f"query to one node with within({part.name.partition('.')[0]}=…)"
            )

    def text(self, part: Part, value: Any) -> str:
        """The quoted text of one part."""
        if value is None:
            raise InvalidKey(f"{self.owner}.{part.name} is None, but it is part of a key; give it a value")
        if part.among:
            return self._node_text(part, value)
        try:
            text = part.transform.encode(value)
            return text if self._held and self.held(part) else self.quoting.quote(text)
        except InvalidKey as error:
            raise InvalidKey(f"{self.owner}.{part.name}: {error}") from None

    def _node_text(self, part: Part, value: Any) -> str:
        """The key of a node of one of several classes."""
        for alternative, template in self._spellings[part.name]:
            values = alternative.values(value)
            if values is not None:
                return template.render(values)
        classes = ", ".join(each.name for each in part.among)
        raise InvalidKey(f"{self.owner}.{part.name} is {shown(value)}, which is of none of the classes {classes}")

    def _node_in(self, part: Part, text: str) -> Any:
        """The value of a part that is a node of one of several classes; None if the text is the key of none."""
        for alternative, template in self._spellings[part.name]:
            told = template.match(text)
            value = None if told is None else alternative.value(told)
            if value is not None:
                return value
        return None

    def match(self, key: str) -> dict[str, str] | None:
        """The plain text of each part that can be read back; None if the key does not match the template."""
        if not key.startswith(self.lead):
            return None
        if self.is_tail:
            rest = key[len(self.lead) :]
            if self._plain is not None and rest.isascii() and self._plain[1](rest) is None:
                if self._is_text and rest:
                    return {self._plain[0]: rest}
                if self._is_whole and len(rest) < 19 and rest.isdigit() and (rest[0] != "0" or rest == "0"):
                    return {self._plain[0]: rest}
            if not self.quoting.is_quoted(rest):
                return None
            texts: tuple[str, ...] = (rest,)
        else:
            found = self._pattern.fullmatch(key)
            if found is None:
                return None
            texts = found.groups()
        told: dict[str, str] = {}
        for part, text in zip(self.parts, texts, strict=True):
            if part.among:
                node = self._node_in(part, text)
                if node is None or told.setdefault(part.name, node) != node:
                    return None
                continue
            plain = self.quoting.unquote(text)
            if not part.is_spelled(plain):
                return None
            if part.transform.decode is not None:
                value = part.transform.decode(plain)
                if told.setdefault(part.name, value) != value:
                    return None
        return told if not self._echoes or self.is_made_of(key, told) else None

    def is_made_of(self, key: str, told: Mapping[str, str]) -> bool:
        """Whether a key is the one of these values, given as the texts that this or another key tells."""
        values = {part.name: value_of(part.plain, told[part.name]) for part in self.parts if part.name in told}
        try:
            return self.render(values) == key
        except (AdjoinError, KeyError):
            return False

    def start(self, known: Mapping[str, Any]) -> tuple[str, Part | None]:
        """The text up to the first unknown part, and that part (None if all parts are known)."""
        text = ""
        for piece in self.pieces:
            if isinstance(piece, str):
                text += piece
            elif piece.name in known:
                text += self.text(piece, known[piece.name])
            else:
                return text, piece
        return text, None

    def follower(self, part: Part) -> str:
        """The literal that follows a part; "" if the part ends the key."""
        at = self.pieces.index(part) + 1
        return str(self.pieces[at]) if at < len(self.pieces) else ""

    def spelled(self, **names: str) -> str:
        """The template's text with parts renamed."""
        return "".join(
            piece if isinstance(piece, str) else f"{{{names.get(piece.name, piece.name)}}}" for piece in self.pieces
        )

    def prefixed(self, side: str) -> str:
        """The template's text with all parts named after a side, as edges write the key of a node."""
        return self.spelled(**{part.name: f"{side}.{part.name}" for part in self.parts})

    def overlaps(self, other: Template) -> bool:
        """Whether the literal beginning of one template is a prefix of the other's."""
        return self.lead.startswith(other.lead) or other.lead.startswith(self.lead)

    def may_equal(self, other: Template) -> bool:
        """Whether both could render the same key.

        No part contains a separator. So both are split at the separators, and the segments are compared one by one.
        A key without parts is compared exactly: "v0" is not a key of "v{number:03}".
        """
        if self._spellings or other._spellings:
            return any(one.may_equal(another) for _, one in self.spelled_out for _, another in other.spelled_out)
        if not self.parts or not other.parts:
            fixed, open = (other, self) if self.parts else (self, other)
            return open.match(fixed.render({})) is not None
        if self._is_dated_before(other) or other._is_dated_before(self):
            return False
        mine, theirs = self._all_segments, other._all_segments
        return len(mine) == len(theirs) and all(map(_may_meet, mine, theirs))

    def _is_dated_before(self, other: Template) -> bool:
        """Whether these keys begin with a date, and so with a digit, and those of the other with another character."""
        first, word = self.pieces[0], other.pieces[0]
        return isinstance(first, Part) and first.is_date and isinstance(word, str) and not word[0].isdigit()

    def is_apart(self, known: Collection[str], others: Iterable[Template]) -> bool:
        """Whether the keys of other templates never begin as these do, up to the first part that is not known."""
        unknown = (
            place for place, piece in enumerate(self.pieces) if isinstance(piece, Part) and piece.name not in known
        )
        start = self._segments(next(unknown, None))
        plain = (each for other in others for _, each in (other.spelled_out if other._spellings else (((), other),)))
        return not any(_may_begin(other._all_segments, start) for other in plain)

    @cached_property
    def _all_segments(self) -> list[tuple[str, str | None]]:
        return self._segments()

    def _segments(self, end: int | None = None) -> list[tuple[str, str | None]]:
        """The segments between separators: (the whole literal, None), or (its beginning, its end) around a part.

        `end` is the number of pieces to look at; None for all.
        """
        segments: list[tuple[str, str | None]] = [("", None)]
        for piece in self.pieces[:end]:
            if isinstance(piece, Part):
                # A date among hyphens is split as literals are, because each of its texts has the hyphens at the same
                # places.
                for character in self.held(piece):
                    segments[-1] = (segments[-1][0], "")
                    segments += [(character, None), ("", None)]
                segments[-1] = (segments[-1][0], "")
                continue
            for character in piece:
                head, tail = segments[-1]
                if character in self.quoting.ends:
                    segments += [(character, None), ("", None)]
                elif tail is None:
                    segments[-1] = (head + character, None)
                else:
                    segments[-1] = (head, tail + character)
        return segments


def _may_meet(one: tuple[str, str | None], other: tuple[str, str | None]) -> bool:
    (head, tail), (other_head, other_tail) = one, other
    if tail is None and other_tail is None:
        return head == other_head
    if tail is None or other_tail is None:
        whole, (start, end) = (head, other) if tail is None else (other_head, one)
        return whole.startswith(start) and whole.endswith(end or "") and len(whole) >= len(start + (end or ""))
    # A part between two literals can be any text, so both are equal for some text if one literal continues the other.
    heads = head.startswith(other_head) or other_head.startswith(head)
    return heads and (tail.endswith(other_tail) or other_tail.endswith(tail))


def _may_begin(segments: list[tuple[str, str | None]], start: list[tuple[str, str | None]]) -> bool:
    """Whether a key with these segments can begin with others, the last of which may continue."""
    if len(segments) < len(start) or not all(map(_may_meet, segments, start[:-1])):
        return False
    (head, tail), (other, rest) = start[-1], segments[len(start) - 1]
    if tail is not None or rest is not None:
        return head.startswith(other) or other.startswith(head)
    return other.startswith(head)


def _merged(pieces: list[str | Part]) -> list[str | Part]:
    merged: list[str | Part] = []
    for piece in pieces:
        # The prefix of the tenant is an empty text where there is no tenant.
        if piece == "":
            continue
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged
