"""Where edges and other items are: the ranges of partitions that a query or a scan reads."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidValue, UnknownField
from adjoin.expressions import Condition
from adjoin.field_types import unknown_field
from adjoin.formats import Format
from adjoin.layouts.keys import Part, Template
from adjoin.layouts.shard_numbers import ShardNumber
from adjoin.requests import SortCondition
from adjoin.tables import KeyType
from adjoin.values import AttributeValue, Item, encode


@dataclass(frozen=True)
class SortField:
    """The field of a class that is the sort key of an index as it is stored, without a template."""

    name: str
    type: KeyType
    encode: Callable[[Any], AttributeValue]
    """The stored form of a value."""
    format: Format | None
    """The format in which the field is stored, if it has one."""

    def bounds(self, low: Any, high: Any) -> tuple[AttributeValue | None, AttributeValue | None]:
        """The stored form of the ends of a range: the nearest value inside it, if the format does not hold an end."""
        if self.format is not None:
            low = None if low is None else self.format.ceil(low)
            high = None if high is None else self.format.floor(high)
        return None if low is None else self.encode(low), None if high is None else self.encode(high)


@dataclass(frozen=True)
class EdgeAccess:
    """A way to query edges: the index, its key attributes, and the function that reads the items.

    `sort` is the template of the sort keys. `exclusive`: no other item of this graph can be among them. `told_by_keys`:
    keys alone determine the class of an item.
    """

    partition_key: str
    decode: Callable[[Item], Any]
    index: str | None = None
    sort_key: str | None = None
    sort: Template | None = None
    exclusive: bool = False
    kind: EntityType | None = None
    told_by_keys: bool = True
    is_literal: bool = False
    """Whether the table's keys are literal, so that others may have written keys there that fit no template."""
    partition: Template | None = None
    """The template of the partition key, if it is not the key of the node at that end."""
    rest: tuple[str, ...] = ()
    """The parts of the id at that end with which the sort key begins, because the partition key does not have them."""
    partition_type: KeyType = "S"
    sort_type: KeyType = "S"
    """The type of the sort key, for an access without a template of it."""
    is_partial: bool = False
    """Whether the index holds only some attributes, so that the items have to be read from the table."""
    sort_field: SortField | None = None
    """The field that is the sort key, if it has no template."""
    shows: Callable[[Item], bool] | None = None
    """For a collection, which of the items that no class explains belong to it; None for none of them."""
    refine: Callable[[Any], Any] | None = None
    """What `decode` does with an edge after it was read; returns None for one that is not part of the answer."""
    is_turned: bool = False
    """Whether edges are read with their ends exchanged, because the keys are those of edges that leave the node."""
    is_sparse: bool = False
    """Whether edges of the class may be missing from the index, because a part of its key is None."""

    @cached_property
    def condition(self) -> SortCondition | None:
        """What the sort key must satisfy; None for the whole partition."""
        if self.sort is None or self.sort_key is None or self.sort.type != "S":
            return None
        return _begins_with(self.sort_key, self.sort.lead)


@dataclass(frozen=True, slots=True)
class ScanAccess:
    """A way to scan for the items of one class, or of the whole graph."""

    filter: Condition | None
    """Holds for each of these items, and perhaps for others."""
    exact: Condition | None
    """Holds for each of these items and for no other; None if no condition tells."""
    attributes: tuple[str, ...]
    """The attributes without which a reader could not tell the class of an item."""


@dataclass(slots=True)
class Range:
    """A range of one partition, or of all its shards, read by one access; `known` are key parts that have a value."""

    access: EdgeAccess
    partition: str
    known: Mapping[str, Any] | None = None
    stem: str = ""
    """With what every sort key of a collection begins; "" if they have nothing in common."""
    number: ShardNumber | None = None
    """The number of shards in which the range is; None if it is in one partition."""
    at: Callable[[int], str] | None = None
    """The partition in each of these shards."""

    @property
    def key(self) -> tuple[str, AttributeValue]:
        """The partition key attribute and its value."""
        return self.access.partition_key, {self.access.partition_type: self.partition}

    @property
    def parts(self) -> list[Range]:
        """The part of the range in each of its partitions."""
        if self.at is None:
            return [self]
        assert self.number is not None
        return [replace(self, partition=self.at(shard), number=None, at=None) for shard in self.number.all]

    def condition(self) -> SortCondition | None:
        """The condition on the sort key for this range."""
        if self.stem:
            if self.access.sort_type != "S":
                return SortCondition(self._sort_key, "=", ({self.access.sort_type: self.stem},))
            return _begins_with(self._sort_key, self.stem)
        if not self.known:
            return self.access.condition
        if field := self.access.sort_field:
            return SortCondition(self._sort_key, "=", (field.encode(self.known[field.name]),))
        sort = self._sort("within")
        # If all parts have a value, this is one key. If not, the text ends before the first open part, and is a
        # prefix.
        text, part = sort.start(self.known)
        if part is None:
            return SortCondition(self._sort_key, "=", (sort.attribute(text),))
        return _begins_with(self._sort_key, text)

    def within(self, parts: Mapping[str, Any]) -> Range:
        """The part of the range where these leading key parts have these values."""
        if field := self.access.sort_field:
            return self._within_field(field, parts)
        sort = self._sort("within")
        fixed = dict(self.known or {})
        open_parts = [part for part in sort.parts if part.name not in fixed]
        ends = self._ends()
        # An id of one field goes by the name of its end: within(target="C1") is the part target.id.
        single = {f"{side}.{end.parts[0]}": side for side, end in ends.items() if end.is_single}
        by_name = {single.get(part.name, part.name): part for part in open_parts}
        given = dict(parts)
        for side, end in ends.items():
            if side in given and not end.is_single:
                given |= end.part_values(end.id(given.pop(side)), f"{side}.")
        for name, value in given.items():
            if name not in by_name:
                raise UnknownField(unknown_field(f"the sort key {sort} of {sort.owner}", name, by_name))
            fixed[by_name[name].name] = self._typed(by_name[name], value)
        # Keys sort from the left, so a part narrows a range only if all parts before it have a value.
        for part in open_parts[: len(given)]:
            if part.name not in fixed:
                raise InvalidValue(
                    f"the sort key {sort} of {sort.owner} narrows from the left only: give {part.name!r} too"
                )
        # At an end of several classes, the key of one node may begin as that of another, so edges are compared after
        # reading.
        chosen = [part for part in open_parts if part.among and part.name in fixed]
        return replace(self, known=fixed, access=only_at(self.access, chosen[0], fixed) if chosen else self.access)

    def _within_field(self, field: SortField, parts: Mapping[str, Any]) -> Range:
        kind = self.access.kind
        assert kind is not None
        for name in parts:
            if name != field.name:
                raise UnknownField(unknown_field(f"the sort key of {kind.name} in this query", name, [field.name]))
        return replace(self, known={name: kind.validated(name, value) for name, value in parts.items()})

    def _ends(self) -> dict[str, NodeType]:
        """The classes of nodes whose ids are parts of the key, by the name before their parts."""
        kind = self.access.kind
        if isinstance(kind, EdgeType):
            return {"source": kind.source, "target": kind.target}
        return {"parent": kind.parent} if isinstance(kind, NodeType) and kind.parent is not None else {}

    def begins_with(self, prefix: Any) -> SortCondition | None:
        """The condition for keys whose first open part begins with this prefix."""
        if field := self._open_field("begins_with"):
            if field.type == "N":
                raise self._no_prefix(self.access.kind and self.access.kind.name)
            return _begins_with(self._sort_key, encode(prefix).get(field.type, ""), field.type)
        sort, text, part = self._open_part("begins_with")
        if sort.type == "N":
            raise self._no_prefix(sort.owner)
        if sort.type == "B":
            return _begins_with(self._sort_key, sort.text(part, prefix), "B")
        return _begins_with(self._sort_key, text + sort.prefix(part, prefix))

    def between(self, low: Any, high: Any) -> SortCondition | None:
        """The condition for keys whose first open part is from `low` to `high`, inclusive; None leaves an end open."""
        if field := self._open_field("between"):
            return self._between_fields(field, low, high)
        sort, start, part = self._open_part("between")
        sort.refuse_node(part)
        if part.transform.decode is None:
            raise InvalidValue(
                f"{sort.owner}.{part.name} is shortened or changed in the key {sort}, so a range of it cannot be read"
            )
        format = part.transform.format
        if format is not None and not format.sorts:
            raise InvalidValue(
                f"{sort.owner}.{part.name} is written as {format.name!r} in the key {sort}, which does not sort by "
                f"value, so a range of it cannot be read"
            )
        if sort.type != "S":
            bounds = [None if each is None else self._typed(part, each) for each in (low, high)]
            return self._between_values(
                low, high, *(None if each is None else sort.value({part.name: each}) for each in bounds)
            )
        # Without a lower end, the range begins with the fixed parts: their text sorts before everything that
        # continues it.
        first = start
        if low is not None:
            lowest = self._typed(part, low)
            first += sort.text(part, lowest if format is None else format.ceil(lowest))
        if high is None:
            last = after(start)
        else:
            # A longer key with this value continues with the separator, so it sorts below the next character.
            highest = self._typed(part, high)
            text = sort.text(part, highest if format is None else format.floor(highest))
            last = start + text + after(sort.follower(part)[:1])
        if last and first > last:
            raise InvalidValue(f"there is nothing between {low!r} and {high!r}; give the lower value first")
        if not last:
            return SortCondition(self._sort_key, ">=", ({"S": first},)) if first else None
        if not first:
            return SortCondition(self._sort_key, "<=", ({"S": last},))
        return SortCondition(self._sort_key, "between", ({"S": first}, {"S": last}))

    def _no_prefix(self, owner: object) -> InvalidValue:
        return InvalidValue(
            f"the sort key {self._sort_key!r} of {owner} is a number, which has no prefix; use between instead"
        )

    def _open_field(self, verb: str) -> SortField | None:
        """The field that is the sort key without a template, if it has no value yet."""
        field = self.access.sort_field
        if field is not None and self.known:
            raise InvalidValue(f"the sort key {field.name!r} already has a value; {verb} has nothing to work on")
        return field

    def _between_fields(self, field: SortField, low: Any, high: Any) -> SortCondition | None:
        kind = self.access.kind
        assert kind is not None
        if field.format is not None and not field.format.sorts:
            raise InvalidValue(
                f"{kind.name}.{field.name} is stored as {field.format.name!r}, which does not sort by value, so a "
                f"range of it cannot be read"
            )
        ends = [None if each is None else kind.validated(field.name, each) for each in (low, high)]
        return self._between_values(low, high, *field.bounds(*ends))

    def _between_values(
        self, low: Any, high: Any, first: AttributeValue | None, last: AttributeValue | None
    ) -> SortCondition | None:
        """The condition for a sort key that is a number or binary."""
        if first is not None and last is not None:
            if order_of(first) > order_of(last):
                raise InvalidValue(f"there is nothing between {low!r} and {high!r}; give the lower value first")
            return SortCondition(self._sort_key, "between", (first, last))
        if first is None and last is None:
            return None
        value = last if first is None else first
        assert value is not None
        return SortCondition(self._sort_key, "<=" if first is None else ">=", (value,))

    def _typed(self, part: Part, value: Any) -> Any:
        kind = self.access.kind
        return kind.validated(part.name, value) if kind and part.name in kind.fields else value

    def _open_part(self, verb: str) -> tuple[Template, str, Part]:
        sort = self._sort(verb)
        text, part = sort.start(self.known or {})
        if part is None:
            raise InvalidValue(f"every part of the sort key {sort} already has a value; {verb} has no part to work on")
        return sort, text, part

    def _sort(self, verb: str) -> Template:
        if self.access.sort is None:
            raise InvalidValue(
                f"{verb} needs a sort key to work on, and {self.access.index or 'this query'} has none; "
                f"give the index one"
            )
        return self.access.sort

    @property
    def _sort_key(self) -> str:
        assert self.access.sort_key is not None
        return self.access.sort_key


def only_at(access: EdgeAccess, part: Part, known: Mapping[str, Any]) -> EdgeAccess:
    """An access to edges at one node of an end of several classes.

    The key of another node may begin with that of this one, so what is read is compared.
    """
    side = part.name.partition(".")[0]
    end = access.kind.end(side) if access.kind is not None else None
    assert end is not None
    node = end.id(known[part.name])
    seen = {"source": "target", "target": "source"}[side] if access.is_turned else side

    def at_node(edge: Any) -> Any:
        return edge if edge is not None and getattr(edge, seen) == node else None

    def refine(edge: Any) -> Any:
        return at_node(edge if access.refine is None else access.refine(edge))

    def decode(item: Item) -> Any:
        return at_node(access.decode(item))

    return replace(access, decode=decode, refine=refine)


def _begins_with(sort_key: str, text: str, type: KeyType = "S") -> SortCondition | None:
    return SortCondition(sort_key, "begins_with", ({type: text},)) if text else None


def order_of(value: AttributeValue) -> Any:
    """A value that sorts as DynamoDB sorts this key."""
    ((tag, stored),) = value.items()
    return Decimal(stored) if tag == "N" else a2b_base64(stored) if tag == "B" else stored


def after(text: str) -> str:
    """The least text above all texts that start with `text`, which ends in an ASCII character."""
    return text and text[:-1] + chr(ord(text[-1]) + 1)
