"""Access patterns: how the items of a class are found in the table or in an index, given values of fields.

An access pattern is a query whose partition key is made of given values, and whose sort key is a value, a prefix or a
range. Each key attribute comes from a template, or is a field of the class that is stored there anyway.

    Order in GSI2      partition  w#{warehouse}      sort  {shipped:%Y-%m-%d}
    warehouse == "W1" and shipped >= day             one query: GSI2PK = "w#W1" and GSI2SK >= "2026-01-31"

Conditions are what a pattern makes of comparisons that all have to hold: the partitions to query, the condition on
the sort key, and the comparisons that the keys do not answer exactly. A range of a template's part is a range of keys
only if the texts of the part sort as its values do, also with what follows the part in the key.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from enum import Enum
from functools import cached_property, partial
from typing import Any, TypeAlias, cast

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType, NodeType
from adjoin.field_types import extent_of, may_be_none, plain_type
from adjoin.fields import Comparison
from adjoin.formats import EPOCHS, Format, dates_between, divides_dates
from adjoin.layouts.keys import SEPARATOR, SHARD, Part, Template
from adjoin.layouts.ranges import after, order_of
from adjoin.layouts.shard_numbers import ShardedTemplate, ShardNumber
from adjoin.requests import SortCondition
from adjoin.tables import KeyType
from adjoin.values import AttributeValue, decode, encode

Partition: TypeAlias = tuple[tuple[str, AttributeValue], ...]
"""The partition key attributes of a query, with their values; none for all partitions, which a scan reads."""

MAX_PARTITIONS = 400
"""How many partitions a search may read besides shards, for fields that are compared with several values, or with a
range of dates or whole numbers: the days of a year, or 200 shards that a table has in its own partition key."""

_RANGES = ("<", "<=", ">", ">=", "between")
_FIXED_WIDTH = (dt.date, uuid.UUID)


@dataclass(frozen=True)
class KeySource:
    """Where a key attribute of a class comes from: a template, or a field that is stored there."""

    attribute: str
    type: KeyType
    template: Template | None = None
    field: str = ""
    encode: Callable[[Any], AttributeValue] = encode
    """The stored form of a value of the field."""
    format: Format | None = None
    """The format in which the field is stored, if it has one."""
    words: tuple[str, ...] = ()
    """For the type attribute, what items of the class have in it: one word, or those of a family."""

    @property
    def names(self) -> tuple[str, ...]:
        """The values that are needed for the key, without the shard."""
        if self.template is None:
            return () if self.words else (self.field,)
        return tuple(part.name for part in self.template.parts if part.name != SHARD)

    @property
    def sorts(self) -> bool:
        """Whether the stored form of the field sorts as its values do."""
        return self.format is None or self.format.sorts

    def bounds(self, operator: str, values: Sequence[Any]) -> list[AttributeValue]:
        """The stored form of the ends of a range; the nearest value inside it, if the format does not hold an end."""
        if self.format is None:
            return [self.encode(value) for value in values]
        is_low = operator in (">=", "<", "between")
        rounded = [self.format.ceil(values[0]) if is_low else self.format.floor(values[0])]
        rounded += [self.format.floor(value) for value in values[1:]]
        return [self.encode(value) for value in rounded]

    def values(self, known: Mapping[str, Any]) -> list[AttributeValue]:
        """The keys with these values: several only for the type attribute of a family."""
        if self.words:
            return [{"S": word} for word in self.words]
        return [self.encode(known[self.field]) if self.template is None else self.template.value(known)]

    def specs(self, name: str) -> list[str]:
        """The transforms of a value in the key: none for a field that is stored there, or a value as it is."""
        parts = () if self.template is None else self.template.parts
        return [part.transform.name for part in parts if part.name == name] or [""] * (self.field == name)

    def is_exact(self, name: str) -> bool:
        """Whether only one value has the spelling that the key has for it."""
        parts = () if self.template is None else self.template.parts
        return all(part.transform.decode is not None for part in parts if part.name == name)


@dataclass(frozen=True)
class ShardPartitions:
    """The partitions of a search in a sharded index. While it is read, there may be more shards."""

    number: ShardNumber
    at: Callable[[int], tuple[Partition, ...]]
    """The partitions in one shard: as many in each, in the same order."""

    def partitions(self) -> tuple[Partition, ...]:
        """The partitions in all shards that are known. Those in new shards are the last ones."""
        return tuple(partition for shard in self.number.all for partition in self.at(shard))


@dataclass(frozen=True)
class PatternConditions:
    """What an access pattern makes of some comparisons."""

    pattern: AccessPattern
    partitions: tuple[Partition, ...]
    """The key attributes and values of each partition to query; none if nothing can match."""
    spread: ShardPartitions | None
    """Which of them there are in each shard, if the partition key is sharded."""
    sort: tuple[SortCondition, ...]
    answered: tuple[Comparison, ...]
    """The comparisons that the keys answer exactly."""
    equalities: int
    """How many comparisons choose the partition, or narrow the sort key to one value."""
    has_range: bool
    order: tuple[str, ...]
    """The fields by which the results of one partition are sorted: by the first, and where it is equal by the next."""
    fixed: frozenset[str]
    """The fields that have one value in all results."""
    is_complete: bool
    """Whether everything that matches is there: nothing is left out because a field of the sort key is None."""

    @property
    def is_narrow(self) -> bool:
        return self.equalities > 0 or self.has_range


@dataclass(slots=True)
class _Narrowing:
    """The comparisons that conditions have used so far."""

    conditions: list[SortCondition] = field(default_factory=list)
    answered: list[Comparison] = field(default_factory=list)
    equalities: int = 0
    has_range: bool = False
    order: list[str] = field(default_factory=list)
    is_empty: bool = False

    def equal(self, comparison: Comparison, *, is_exact: bool) -> None:
        self.equalities += 1
        if is_exact:
            self.answered.append(comparison)

    def is_value(self, attribute: str, value: AttributeValue) -> None:
        # No key is empty, and DynamoDB refuses to be asked for one.
        self.is_empty = self.is_empty or _is_empty(value)
        self.conditions.append(SortCondition(attribute, "=", (value,)))

    def between(self, attribute: str, low: AttributeValue | None, high: AttributeValue | None) -> None:
        low = None if low is not None and _is_empty(low) else low
        self.is_empty = self.is_empty or (high is not None and _is_empty(high))
        if low is not None and high is not None:
            self.is_empty = self.is_empty or order_of(low) > order_of(high)
            self.conditions.append(SortCondition(attribute, "between", (low, high)))
        elif low is not None or high is not None:
            value = low if high is None else high
            assert value is not None
            self.conditions.append(SortCondition(attribute, ">=" if high is None else "<=", (value,)))

    def begins_with(self, attribute: str, value: AttributeValue) -> None:
        if not _is_empty(value):
            self.conditions.append(SortCondition(attribute, "begins_with", (value,)))


@dataclass(frozen=True)
class AccessPattern:
    """How a class is found in the table (`index` is None) or in one index."""

    kind: EntityType
    index: str | None
    partition: tuple[KeySource, ...]
    sort: tuple[KeySource, ...]
    held: frozenset[str] | None
    """The attributes that the index holds, if it does not hold all of them."""
    is_partial: bool
    """Whether items have to be read from the table, because the index does not hold all attributes of the class."""
    is_completed: bool = False
    """Whether DynamoDB adds to the entries of the index what it does not hold, as it does for a local index."""

    @property
    def number(self) -> ShardNumber | None:
        """The number of shards of the partition key; None if it is not sharded."""
        templates = (source.template for source in self.partition)
        return next((each.number for each in templates if isinstance(each, ShardedTemplate)), None)

    def needs(self) -> str:
        """What a search by this pattern needs, for messages."""
        equal = [
            f"{name} == …{' or a range of dates' if self._has_dates(source, name) else ''}"
            for source in self.partition
            for name in source.names
            if name not in self._implied
        ]
        then = [name for source in self.sort for name in source.names]
        wanted = [" and ".join(equal)] if equal else []
        wanted += [f"{'then ' if equal else ''}{', '.join(then)}"] if then else []
        return f"{self.where} needs {', '.join(wanted) or 'nothing'}"

    @property
    def where(self) -> str:
        """The table, or the name of the index, for messages."""
        return "the table" if self.index is None else repr(self.index)

    def other_order(self, name: str) -> str | None:
        """What the sort key has in place of a field's value, if it is not sorted by that; for messages."""
        for source in self.sort:
            if source.template is None and source.field == name and not source.sorts and source.format is not None:
                return f"{source.attribute!r}, in which it is written as {source.format.name!r}"
            if source.template is not None and any(
                part.name == name and (_is_lossy(part) or not _sorts(source.template, part))
                for part in source.template.parts
            ):
                return source.template.with_transforms
        return None

    def conditions(self, comparisons: Sequence[Comparison]) -> PatternConditions | None:
        """The conditions for comparisons that all have to hold; None if they do not choose the partition."""
        asked = {one.field for one in comparisons}
        for name, side in self._wanted:
            if name not in asked and side not in asked and name not in self._implied:
                return None
        by_parts = [(one, self._by_parts(one)) for one in comparisons]
        comparisons = [each for _, parts in by_parts for each in parts]
        choices = _choices(comparisons)
        names = tuple(name for name, _ in self._wanted)
        dates = {name: self._dates(name, comparisons) for name in names if name not in choices}
        numbers = {name: self._numbers(name, comparisons) for name, found in dates.items() if not found}
        spans = {**dates, **numbers}
        if not all(spans.values()):
            return None
        values = [
            spans[name] if name in spans else [self._typed(name, each) for each in choices[name].operands]
            for name in names
        ]
        if math.prod(map(len, values)) > MAX_PARTITIONS:
            return None
        known = [dict(zip(names, combination, strict=True)) for combination in itertools.product(*values)]
        narrowing = _Narrowing(equalities=len(dates) - len(numbers), has_range=not asked.isdisjoint(numbers))
        for name in names:
            if name in choices:
                narrowing.equal(choices[name], is_exact=all(source.is_exact(name) for source in self.partition))
        self._narrow_sort(narrowing, choices, comparisons)
        exact = {id(each) for each in narrowing.answered}
        answered = tuple(one for one, parts in by_parts if all(id(part) in exact for part in parts))
        number = None if narrowing.is_empty else self.number
        spread = None if number is None else ShardPartitions(number, partial(self._partitions, known))
        # Nothing is between the ends of an empty range, and a sharded key has no partition without a shard.
        partitions: tuple[Partition, ...] = ()
        if not narrowing.is_empty:
            partitions = self._partitions(known) if spread is None else spread.partitions()
        return PatternConditions(
            self,
            partitions,
            spread,
            tuple(narrowing.conditions),
            answered,
            narrowing.equalities,
            narrowing.has_range,
            tuple(narrowing.order),
            frozenset(name for name, each in choices.items() if len(each.operands) == 1),
            self._is_complete(comparisons),
        )

    @cached_property
    def _wanted(self) -> tuple[tuple[str, str], ...]:
        """The values that choose the partition, each with the field that holds it or the node whose id it is of."""
        names = dict.fromkeys(name for source in self.partition for name in source.names)
        return tuple((name, name.partition(".")[0]) for name in names)

    @property
    def has_dates(self) -> bool:
        """Whether a range of dates lies in few partitions: one for each day, hour or month."""
        return any(self._has_dates(source, name) for source in self.partition for name in source.names)

    def _has_dates(self, source: KeySource, name: str) -> bool:
        plain = plain_type(self.kind.fields[name]) if name in self.kind.fields else None
        return all(divides_dates(spec, plain) for spec in source.specs(name))

    def _dates(self, name: str, comparisons: Sequence[Comparison]) -> list[Any]:
        """A value for each partition that a range of dates lies in; none if there is no such range."""
        ranges = [each for each in comparisons if each.field == name and each.operator in _RANGES]
        if not ranges or any(None in each.operands for each in ranges):
            return []
        typed = [(each.operator, [self._typed(name, operand) for operand in each.operands]) for each in ranges]
        lows = [values[0] for operator, values in typed if operator in (">", ">=", "between")]
        highs = [values[-1] for operator, values in typed if operator in ("<", "<=", "between")]
        specs = [spec for source in self.partition for spec in source.specs(name)]
        if not lows or not highs or not isinstance(lows[0], dt.date):
            return []
        return dates_between(max(lows), min(highs), specs, MAX_PARTITIONS)

    @cached_property
    def _implied(self) -> dict[str, Sequence[Any]]:
        """The values of those fields that choose the partition and need no comparison.

        These are whole numbers with both bounds, which are never None: a table may have the shards of a day as a part
        of its ids. And for a class of a family, what tells it from the others.
        """
        kind, found = self.kind, dict[str, Sequence[Any]]()
        for name, _ in self._wanted:
            info = kind.fields.get(name)
            if isinstance(kind, NodeType) and kind.head is not None and name == kind.discriminator:
                found[name] = tuple(map(decode, kind.told_by))
            elif info is not None and plain_type(info) is int and not may_be_none(info):
                least, most = extent_of(info, int)
                if least is not None and most is not None:
                    found[name] = range(least, most + 1)
        return found

    def _numbers(self, name: str, comparisons: Sequence[Comparison]) -> Sequence[Any]:
        """A value for each partition that a range of whole numbers lies in; none if the range has no ends."""
        info, bounds = self.kind.fields.get(name), self._implied.get(name, ())
        if info is None or plain_type(info) is not int or (bounds and not isinstance(bounds, range)):
            return bounds
        lows, highs = [*bounds[:1]], [*bounds[-1:]]
        for each in comparisons:
            if each.field != name or each.operator not in _RANGES:
                continue
            if None in each.operands:
                return ()
            values = [self._typed(name, operand) for operand in each.operands]
            if each.operator in (">", ">=", "between"):
                lows.append(values[0] + (each.operator == ">"))
            if each.operator in ("<", "<=", "between"):
                highs.append(values[-1] - (each.operator == "<"))
        if not lows or not highs:
            return ()
        found = range(max(lows), min(highs) + 1)
        if not found:
            # Nothing is in an empty range: one partition is read, and all that is there is left out.
            return lows[:1]
        return found if len(found) <= MAX_PARTITIONS else ()

    def _is_complete(self, comparisons: Sequence[Comparison]) -> bool:
        present = {each.field for each in comparisons if each.operator != "<>" and None not in each.operands}
        if any(source.words for source in (*self.partition, *self.sort)):
            # Keys may tell the class of an item which others have written without the type attribute.
            return False
        names = {name for source in self.sort for name in source.names} - present
        return not any(name in self.kind.attributes and may_be_none(self.kind.fields[name]) for name in names)

    def _partitions(self, known: Sequence[Mapping[str, Any]], shard: int | None = None) -> tuple[Partition, ...]:
        """The partitions with these values, in one shard if the partition key is sharded."""
        keys = known if shard is None else [{**each, SHARD: shard} for each in known]
        names = [source.attribute for source in self.partition]
        combined = itertools.chain.from_iterable(
            itertools.product(*(source.values(each) for source in self.partition)) for each in keys
        )
        found = [tuple(zip(names, values, strict=True)) for values in combined]
        whole = {repr(each): each for each in found if not any(_is_empty(value) for _, value in each)}
        return tuple(whole.values())

    def _typed(self, name: str, value: Any) -> Any:
        if name in self.kind.fields:
            return self.kind.coerced(name, value)
        part = self.kind.part(name)
        return value if part is None else part[0].coerced(part[1], value)

    def _by_parts(self, comparison: Comparison) -> list[Comparison]:
        """A comparison of the node at an edge's end, or of a child's parent, as comparisons of the parts of its id."""
        side = comparison.field
        end = self.kind.end(side)
        if end is not None and end.only is not None and comparison.operator in ("=", "in", *_RANGES):
            ids = tuple(None if each is None else end.id(each) for each in comparison.operands)
            return [Comparison(f"{side}.{end.only}", comparison.operator, ids)]
        if end is None or comparison.operator != "=":
            return [comparison]
        values = end.part_values(end.id(comparison.operands[0]), f"{side}.")
        return [Comparison(name, "=", (value,)) for name, value in values.items()]

    # --- the sort key --------------------------------------------------------------------------

    def _narrow_sort(
        self, narrowing: _Narrowing, choices: Mapping[str, Comparison], comparisons: Sequence[Comparison]
    ) -> None:
        single = {name: each for name, each in choices.items() if len(each.operands) == 1}
        for source in self.sort:
            if source.words:
                if len(source.words) > 1:
                    return
                narrowing.is_value(source.attribute, {"S": source.words[0]})
                continue
            known = {name: self._typed(name, single[name].operands[0]) for name in source.names if name in single}
            if source.template is None:
                if source.field in known:
                    value = source.encode(known[source.field])
                    narrowing.is_value(source.attribute, value)
                    narrowing.equal(single[source.field], is_exact=True)
                    continue
                narrowing.order += self._order_from(source, None, single)
                self._narrow_field(narrowing, source, [each for each in comparisons if each.field == source.field])
                return
            text, part = source.template.start(known)
            parts = source.template.parts
            for each in parts if part is None else parts[: parts.index(part)]:
                # The key of a node may begin with that of a node of another class, so a prefix of it is not exact.
                is_whole = part is None or not each.among
                narrowing.equal(single[each.name], is_exact=is_whole and each.transform.decode is not None)
            if part is None:
                narrowing.is_value(source.attribute, source.template.attribute(text))
                continue
            narrowing.order += self._order_from(source, part, single)
            compared = [each for each in comparisons if each.field == part.name]
            self._narrow_part(narrowing, source, text, part, compared)
            return

    def _order_from(self, first: KeySource, part: Part | None, fixed: Mapping[str, Any]) -> Iterator[str]:
        """The fields by which items are sorted that are equal in all before `part` of the sort key `first`."""
        for source in self.sort[self.sort.index(first) :]:
            if source.template is None:
                if not source.sorts or len(source.words) > 1:
                    return
                yield from source.names
                continue
            parts = source.template.parts
            for each in parts if part is None else parts[parts.index(part) :]:
                if each.name in fixed and each is not part:
                    continue
                if not _sorts(source.template, each) or _is_lossy(each):
                    return
                yield each.name
            part = None

    def _narrow_field(self, narrowing: _Narrowing, source: KeySource, comparisons: Sequence[Comparison]) -> None:
        """Narrows a sort key that is itself a field."""
        for each in comparisons:
            start = each.operands[0] if each.operator == "begins_with" else None
            if isinstance(start, str | bytes) and source.type in (prefix := encode(start)):
                narrowing.begins_with(source.attribute, prefix)
                narrowing.answered.append(each)
                narrowing.has_range = True
                return
        usable = [each for each in comparisons if each.operator in _RANGES and None not in each.operands]
        if not usable or not source.sorts:
            return
        narrowing.has_range = True
        bounds = [
            (each, source.bounds(each.operator, [self._typed(source.field, operand) for operand in each.operands]))
            for each in usable
        ]
        (only, values) = bounds[0]
        if len(bounds) == 1 and only.operator != "between" and not _is_empty(values[0]):
            narrowing.conditions.append(SortCondition(source.attribute, cast("Any", only.operator), tuple(values)))
            narrowing.answered.append(only)
            return
        lows = [values[0] for each, values in bounds if each.operator in (">", ">=", "between")]
        highs = [values[-1] for each, values in bounds if each.operator in ("<", "<=", "between")]
        low, high = max(lows, key=order_of, default=None), min(highs, key=order_of, default=None)
        narrowing.between(source.attribute, low, high)
        narrowing.answered += [each for each in usable if each.operator in ("<=", ">=", "between")]

    def _narrow_part(
        self, narrowing: _Narrowing, source: KeySource, start: str, part: Part, comparisons: Sequence[Comparison]
    ) -> None:
        """Narrows a sort key by comparisons of the first part of its template that has no value."""
        template = source.template
        assert template is not None
        for each in comparisons:
            if each.operator == "begins_with" and part.transform.prefix and not _is_number(part):
                if not isinstance(each.operands[0], str):
                    continue
                prefix = start + template.prefix(part, each.operands[0])
                narrowing.begins_with(source.attribute, {"S": prefix})
                narrowing.answered += [each] if part.transform.decode is not None else []
                narrowing.has_range = True
                return
        usable = [each for each in comparisons if each.operator in _RANGES and None not in each.operands]
        if not usable or not _sorts(template, part):
            narrowing.begins_with(source.attribute, {"S": start})
            return
        narrowing.has_range = True
        lows, highs = [start], [after(start)] if start else []
        for each in usable:
            values, format = [self._typed(part.name, operand) for operand in each.operands], part.transform.format
            held = values if format is None else [format.floor(value) for value in values]
            texts = [template.text(part, value) for value in held]
            is_lossy = _is_lossy(part) or held != values
            low, high, is_exact = _text_bounds(template, part, each.operator, start, texts, is_lossy=is_lossy)
            lows += [low] if low is not None else []
            highs += [high] if high is not None else []
            narrowing.answered += [each] if is_exact else []
        last = min(highs, default=None)
        narrowing.between(source.attribute, {"S": max(lows)}, None if last is None else {"S": last})


# --- comparisons -------------------------------------------------------------------------------


def _choices(comparisons: Iterable[Comparison]) -> dict[str, Comparison]:
    """For each field that is compared with == or is_in, the comparison with the fewest values."""
    found: dict[str, Comparison] = {}
    for each in comparisons:
        if each.operator in ("=", "in") and each.operands and None not in each.operands:
            other = found.get(each.field)
            if other is None or len(each.operands) < len(other.operands):
                found[each.field] = each
    return found


# --- texts that sort ---------------------------------------------------------------------------


def _is_number(part: Part) -> bool:
    plain = part.plain
    if plain is not None and issubclass(plain, Enum):
        return any(isinstance(member.value, int | Decimal) for member in plain)
    return plain is not None and issubclass(plain, int | float | Decimal)


def _sorts(template: Template, part: Part) -> bool:
    """Whether keys sort by the values of a part, among keys that have the same text before it."""
    follower, name = template.follower(part), part.transform.name
    if part.among:
        return False
    if part.transform.format is not None:
        return part.transform.format.sorts
    if "%" in name or name in EPOCHS:
        return part.transform.sorts_dates
    if name not in ("", "sortable") and not part.transform.sorts:
        return False
    if _is_number(part) and not part.transform.sorts:
        return False
    is_fixed = part.plain is not None and issubclass(part.plain, _FIXED_WIDTH)
    if is_fixed or (part.transform.sorts and name != "sortable"):
        return True
    quoting = template.quoting
    if quoting.escape and not _is_number(part) and any(end > "%" for end in quoting.ends):
        # Such a character is escaped too, and sorts where it should not.
        return False
    # A shorter value continues with the separator, which must sort before every character of a longer value.
    return not follower or (follower[0] == SEPARATOR and (quoting.escape or _is_number(part)))


def _is_lossy(part: Part) -> bool:
    """Whether several values have the same text: in a date format without the day, or without parts of a second."""
    if part.transform.format is not None or part.transform.name in EPOCHS:
        return part.transform.format is None
    is_date = part.plain is not None and not issubclass(part.plain, dt.datetime)
    return "%" in part.transform.name and ("%d" if is_date else "%f") not in part.transform.name


def _text_bounds(
    template: Template, part: Part, operator: str, start: str, texts: Sequence[str], *, is_lossy: bool
) -> tuple[str | None, str | None, bool]:
    """The first and the last key of a comparison, and whether the keys between them are exactly those for it."""
    follower = template.follower(part)[:1]
    first, last = start + texts[0], start + texts[-1] + after(follower)
    match operator:
        case ">=":
            return first, None, not is_lossy
        case "<=":
            return None, last, not is_lossy
        case "between":
            return first, last, not is_lossy
        case ">" if not is_lossy:
            # The least key above all keys with this value.
            return start + texts[0] + (after(follower) or "\0"), None, True
        case "<" if not is_lossy and follower:
            return None, start + texts[0], True
        case ">":
            return first, None, False
    return None, last, False


def _is_empty(value: AttributeValue) -> bool:
    return not next(iter(value.values()))
