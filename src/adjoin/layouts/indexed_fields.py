"""Indexed fields: one overloaded index for all indexed fields of all classes, and the shards that a graph knows.

    partition              sort
    PERSON#born#0          1980-12-19#PERSON#P1          an entry of Person.born, in shard 0
    HAS_SKILL#skill#2      python#PERSON#P1#HAS_SKILL#SKILL#S7
    POST#tags[]#0          python#POST#A7                an entry of an element of Post.tags

The partition key names the class, the field and the shard. The sort key is the value, in a form whose text order is the
order of the values, followed by the key of the entity. So no two entries are equal, and all shards share one order in
which a next page can continue.

DynamoDB puts an item into an index once. So the entity's own item is the entry of its first indexed field, and each
further indexed field has an index copy: a copy of the item under a key of its own. If the elements of a field are
indexed, each of them has one.

**The shard book** holds the shard maps that a graph has read, the time when it read them, and the writes to the shards
since then. Plans read the stored maps and fill the book. A field without a map has one shard, as every field has at
first. If the index has a number of shards, there are no maps (see `shard_numbers`). Writes are counted when entries are
made, so writes that are refused later count too: they show the demand. During `explain` nothing is learned or counted,
because its responses are samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from enum import Enum
from threading import Lock
from typing import Any

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType
from adjoin.errors import InvalidKey, InvalidModel, InvalidValue
from adjoin.field_types import path_type, plain_type, unknown_field
from adjoin.fields import AnyOf, Comparison, Predicate
from adjoin.layouts.interface import Index
from adjoin.layouts.key_values import check_length, sortable_text
from adjoin.layouts.keys import SEPARATOR, Quoting
from adjoin.layouts.shard_numbers import ShardNumber
from adjoin.requests import SortCondition
from adjoin.schema import Schema
from adjoin.sharding.heat import Heat, HeatCounter
from adjoin.sharding.maps import FixedShards, Shard, Sharding, ShardMap
from adjoin.units import KB, MAX_SORT_KEY_SIZE
from adjoin.values import Item, encode

# --- shards that a graph knows -----------------------------------------------------------------


_REHEARSED: ContextVar[bool] = ContextVar("adjoin_rehearsed", default=False)


@contextmanager
def rehearsed() -> Iterator[None]:
    """A block for `explain`: responses are samples and nothing is written, so nothing is learned or counted."""
    token = _REHEARSED.set(True)
    try:
        yield
    finally:
        _REHEARSED.reset(token)


def is_rehearsed() -> bool:
    return _REHEARSED.get()


class ShardBook:
    """The shards of all indexed fields, by the scope of the field."""

    def __init__(self, number: ShardNumber | None = None, clock: Callable[[], float] = time.time) -> None:
        """`number` is the number of shards of the index; None if its shards are adaptive in any case."""
        self.clock = clock
        self.number = number or ShardNumber("", (), None)
        self._maps: dict[str, tuple[ShardMap, float]] = {}
        self._counters: dict[str, HeatCounter] = {}
        self._counting = Lock()

    @property
    def is_adaptive(self) -> bool:
        return self.number.known is None

    def map(self, scope: str) -> ShardMap:
        return self._maps[scope][0] if scope in self._maps else ShardMap()

    def is_stale(self, scope: str) -> bool:
        """Whether a reader must read the stored map again, because its lease is over or the clock was set back."""
        if not self.is_adaptive:
            return self.number.is_stale
        if scope not in self._maps:
            return True
        known, read_at = self._maps[scope]
        return not 0 <= self.clock() - read_at < known.lease

    def may_move(self, scope: str) -> bool:
        """Whether an entry that is put again unchanged may move to another shard."""
        return self.map(scope).version > 0 if self.is_adaptive else self.number.may_move

    def learn(self, scope: str, stored: ShardMap, read_at: float) -> None:
        """Keeps a map that was read at that time, unless a newer version is known."""
        if not is_rehearsed() and stored.version >= self.map(scope).version:
            self._maps[scope] = (stored, read_at)

    def place(self, scope: str, value: str, id: str, size: int) -> Shard:
        """The shard for a new entry of that size in bytes; with adaptive shards, the write is counted."""
        if not self.is_adaptive:
            return Shard(self.number.place(id))
        shard = self.map(scope).place(value, id, self.clock())
        if not is_rehearsed():
            with self._counting:
                counter = self._counters.setdefault(scope, HeatCounter())
                counter.record(shard, value, max(1, -(-size // KB)), size)
        return shard

    def places(self, scope: str, value: str) -> tuple[Shard, ...]:
        return self._sharding(scope).places(value)

    def all_places(self, scope: str, is_wanted: Callable[[str], bool]) -> tuple[Shard, ...]:
        return self._sharding(scope).all_places(is_wanted)

    def _sharding(self, scope: str) -> Sharding:
        return self.map(scope) if self.is_adaptive else FixedShards(len(self.number.all))

    # --- heat ----------------------------------------------------------------------------------

    def reports(self) -> dict[str, Heat]:
        """The heat that has to be reported now, by scope; it counts as reported from now on."""
        if not self._counters or is_rehearsed():
            return {}
        now = self.clock()
        with self._counting:
            due = {scope: counter for scope, counter in self._counters.items() if counter.is_due(now)}
            return {scope: counter.report(now) for scope, counter in due.items()}

    def heard(self, scope: str, heat: Heat) -> None:
        """Notes the heat of all processes together, which decides how often to report."""
        with self._counting:
            self._counters[scope].heard(heat, self.clock())

    def throttled(self) -> None:
        """Notes that the service throttled a write, so that all writes since the last report are reported soon."""
        with self._counting:
            for counter in self._counters.values():
                counter.throttled()


# --- the index ---------------------------------------------------------------------------------


_QUOTING = Quoting(frozenset(SEPARATOR), escape=True)
ELEMENTS = "[]"
"""Follows the name of a field in the keys of the entries of its elements. No name of a field ends so."""
_STEP = "$"
"""Separates the steps of a path. It sorts after the separator and before every quoted character."""
_BEYOND = "%"
"""The least character with which a longer value can continue."""
_NO_TEXT = "%"
"""A step of a path that is empty text. It sorts before every other step, and a path of it after the empty path."""


def indexed_text(value: Any) -> str:
    """The text of a value, without separators, in a form whose text order is the order of the values."""
    if isinstance(value, tuple | list):
        return _STEP.join(indexed_text(step) or _NO_TEXT for step in value)
    if isinstance(value, float):
        value = Decimal(encode(value)["N"])
    return _QUOTING.quote(sortable_text(int(value) if isinstance(value, bool) else value))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sort keys from `low` to `high`, both included; or all that begin with `prefix`.

    `value` is the text of the value that all of them share, if they do.
    """

    low: str = ""
    high: str | None = None
    prefix: str | None = None
    value: str | None = None

    @property
    def is_empty(self) -> bool:
        return self.high is not None and (self.low > self.high or not self.high)

    def condition(self, sort_key: str) -> SortCondition | None:
        if self.prefix is not None:
            return SortCondition(sort_key, "begins_with", ({"S": self.prefix},)) if self.prefix else None
        if self.high is None:
            return SortCondition(sort_key, ">=", ({"S": self.low},)) if self.low else None
        if not self.low:
            return SortCondition(sort_key, "<=", ({"S": self.high},))
        return SortCondition(sort_key, "between", ({"S": self.low}, {"S": self.high}))

    def may_hold(self, value: str) -> bool:
        """Whether entries of a value, given by its text, can be in the stretch."""
        if self.prefix is not None:
            return value.startswith(self.prefix)
        return self.low < value + _STEP and (self.high is None or value + SEPARATOR <= self.high)

    def side_of(self, key: str) -> int:
        """Whether a sort key is before the stretch (-1), in it (0) or after it (1)."""
        if self.prefix is not None:
            return 0 if key.startswith(self.prefix) else -1 if key < self.prefix else 1
        return -1 if key < self.low else 1 if self.high is not None and key > self.high else 0

    def narrowed(self, other: Stretch) -> Stretch:
        """The intersection of two stretches, neither of which has a prefix."""
        highs = [high for high in (self.high, other.high) if high is not None]
        return Stretch(max(self.low, other.low), min(highs, default=None), None, self.value or other.value)


def disjoint(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """The stretches that together hold what these hold, each entry once, in order."""
    kept = [each for each in dict.fromkeys(stretches) if not each.is_empty]
    if len(kept) < 2:
        return tuple(kept)
    ranges = [each if each.prefix is None else Stretch(each.prefix, _above(each.prefix)) for each in kept]
    ranges.sort(key=lambda each: each.low)
    found = ranges[:1]
    for each in ranges[1:]:
        last = found[-1]
        if last.high is not None and each.low > last.high:
            found.append(each)
            continue
        high = None if last.high is None or each.high is None else max(last.high, each.high)
        found[-1] = Stretch(last.low, high, None, last.value if last.value == each.value else None)
    return tuple(found)


def _above(prefix: str) -> str | None:
    """The least text above all texts with a prefix; None if there is none. It is not a key, which has a separator."""
    start = prefix.rstrip("\U0010ffff")
    if not start:
        return None
    following = ord(start[-1]) + 1
    # UTF-8 has no surrogates.
    return start[:-1] + chr(0xE000 if following == 0xD800 else following)


@dataclass(frozen=True)
class IndexedField:
    """One indexed field of one class."""

    kind: EntityType
    name: str
    is_own: bool
    """Whether the entity's own item is the entry, rather than an index copy."""
    has_elements: bool = False
    """Whether each element of the field has an entry, rather than the whole value."""

    @property
    def word(self) -> str:
        """The name of the field in keys and records, which no other field has: "tags[]" for its elements."""
        return self.name + ELEMENTS if self.has_elements else self.name

    @property
    def scope(self) -> str:
        """The prefix of the partition keys of its entries."""
        return f"{self.kind.label}{SEPARATOR}{self.word}"

    @property
    def _is_path(self) -> bool:
        return path_type(self.kind.fields[self.name]) is not None

    @property
    def _is_number(self) -> bool:
        plain = plain_type(self.kind.fields[self.name])
        if plain is not None and issubclass(plain, Enum):
            return any(isinstance(member.value, int | Decimal) for member in plain)
        return plain is not None and issubclass(plain, int | float | Decimal)

    def stretches(self, asked: Predicate) -> tuple[Stretch, ...] | None:
        """The stretches of entries for which a condition holds; None if the entries of this field cannot answer it."""
        if self.has_elements:
            # Two elements of one entity are two entries, so what more than one value is asked for comes twice.
            if not isinstance(asked, Comparison) or asked.operator != "contains" or asked.operands == (None,):
                return None
            return self._one_value(asked.operands[0])
        if isinstance(asked, AnyOf):
            sides = [self.stretches(side) for side in asked.predicates]
            found = [side for side in sides if side is not None]
            return disjoint(each for side in found for each in side) if len(found) == len(sides) else None
        if not isinstance(asked, Comparison) or asked.field != self.name:
            return None
        return self._stretches(asked)

    def _stretches(self, comparison: Comparison) -> tuple[Stretch, ...] | None:
        operator = comparison.operator
        if operator == "exists":
            return (Stretch(),)
        if operator == "begins_with":
            return (self._prefixed(comparison.operands[0]),)
        if operator in ("<>", "contains") or any(operand is None for operand in comparison.operands):
            return None
        texts = [self.text(operand) for operand in comparison.operands]
        match operator:
            case "=" | "in":
                return tuple(Stretch(text + SEPARATOR, text + _STEP, None, text) for text in sorted(set(texts)))
            case "<":
                return (Stretch("", texts[0]),)
            case "<=":
                return (Stretch("", texts[0] + _STEP),)
            case ">":
                return (Stretch(texts[0] + _STEP),)
            case ">=":
                return (Stretch(texts[0]),)
            case "between":
                return (Stretch(texts[0], texts[1] + _STEP),)
        return None

    def _one_value(self, value: Any) -> tuple[Stretch, ...]:
        text = self.text(value)
        return (Stretch(text + SEPARATOR, text + _STEP, None, text),)

    def texts(self, value: Any) -> dict[str, Any]:
        """The different elements of a value of the field, by their texts."""
        return {} if value is None else {self.text(each): each for each in value if each is not None}

    def _prefixed(self, prefix: Any) -> Stretch:
        if self._is_path:
            if not isinstance(prefix, tuple | list):
                raise InvalidValue(
                    f"{self.kind.name}.{self.name} is a path, so its prefix is a path too: pass the steps in a tuple"
                )
            text = indexed_text(prefix)
            return Stretch(text + SEPARATOR, text + _BEYOND) if prefix else Stretch()
        if not isinstance(prefix, str) or self._is_number:
            raise InvalidValue(
                f"{self.kind.name}.{self.name} cannot begin with {prefix!r}: a prefix is text, and only text fields "
                f"have prefixes; use between for a range"
            )
        return Stretch(prefix=self._checked(_QUOTING.quote(prefix)))

    def text(self, value: Any) -> str:
        """The text of a value of the field, or of an element; the value is checked against the field's type."""
        value = (
            self.kind.coerced_element(self.name, value) if self.has_elements else self.kind.coerced(self.name, value)
        )
        try:
            text = indexed_text(value)
        except InvalidKey as error:
            raise InvalidKey(f"{self.kind.name}.{self.name}: {error}") from None
        return self._checked(text)

    def _checked(self, text: str) -> str:
        # In the sort key, at least a separator follows the value.
        check_length(
            text, MAX_SORT_KEY_SIZE - 1, f"a value of {self.kind.name}.{self.name} in its index", "a shorter one"
        )
        return text


class OverloadedIndex:
    """The entries of all indexed fields of one schema."""

    def __init__(self, index: Index, schema: Schema, prefix: str, book: ShardBook) -> None:
        if index.sort_attribute is None:
            raise InvalidModel(f"the index {index.name!r} is for indexed fields, whose order needs a sort key; add one")
        self.name = index.name
        self.partition_key, self.sort_key = index.partition_attribute, index.sort_attribute
        self.is_partial = index.projection.kind != "ALL"
        self.book = book
        self._prefix = prefix
        self._fields: Mapping[type[Any], tuple[IndexedField, ...]] = {
            kind.model: (
                *(IndexedField(kind, name, place == 0) for place, name in enumerate(kind.indexed)),
                *(IndexedField(kind, name, is_own=False, has_elements=True) for name in kind.elements),
            )
            for kind in schema.types
        }
        self._by_name = {model: {each.name: each for each in fields} for model, fields in self._fields.items()}

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(each.scope for fields in self._fields.values() for each in fields)

    def fields(self, kind: EntityType) -> tuple[IndexedField, ...]:
        return self._fields[kind.model]

    def field(self, kind: EntityType, name: str) -> IndexedField:
        found = self._by_name[kind.model].get(name)
        if found is None:
            kind.attribute(name)
            raise InvalidKey(unindexed(kind, name))
        return found

    def is_same_scope(self, kind: EntityType, one: str, other: str) -> bool:
        """Whether two partition keys are shards of one field of a class; a value may have shards of its own."""
        starts = (self.partition(field.scope, "") for field in self.fields(kind))
        return any(one.startswith(start) and other.startswith(start) for start in starts)

    def partition(self, scope: str, shard: object) -> str:
        return f"{self._prefix}{scope}{SEPARATOR}{shard}"

    def entry(self, field: IndexedField, value: Any, tail: str, size: int) -> Item:
        """The index key attributes of an entry; none for the value None. `tail` is the key of the entity."""
        if value is None:
            return {}
        text = field.text(value)
        data = text + SEPARATOR + tail
        check_length(
            data, MAX_SORT_KEY_SIZE, f"the index key of {field.kind.name}.{field.name}", "a shorter value or id"
        )
        shard = self.book.place(field.scope, text, tail, size)
        return {self.partition_key: {"S": self.partition(field.scope, shard)}, self.sort_key: {"S": data}}

    def shapes(self, kind: EntityType, tail: str) -> dict[str, dict[str, str]]:
        """The templates of the index keys of each field, for entities whose key has the template `tail`."""
        return {
            each.word: {
                self.partition_key: self.partition(each.scope, "{shard}"),
                self.sort_key: f"{{{each.name}}}{SEPARATOR}{tail}",
            }
            for each in self.fields(kind)
        }

    def partitions(self, field: IndexedField, stretch: Stretch) -> list[str]:
        """The partition keys that may hold entries of a stretch, as far as this graph knows."""
        if stretch.value is not None:
            shards = self.book.places(field.scope, stretch.value)
        else:
            shards = self.book.all_places(field.scope, stretch.may_hold)
        return [self.partition(field.scope, shard) for shard in shards]


def unindexed(kind: EntityType, name: str) -> str:
    if name not in kind.attributes:
        return unknown_field(kind.name, name, kind.attributes)
    if name in kind.elements:
        return (
            f"{kind.name}.{name} is indexed by its elements, which have no order together; find one of them with "
            f"field({name!r}).contains(…)"
        )
    indexed = ", ".join(map(repr, kind.indexed)) or "none"
    return f"{kind.name}.{name} is not indexed (indexed fields: {indexed}); mark it with Indexed() to find by it"
