"""The overloaded index: one index for every indexed field of every class.

    partition              sort
    PERSON#born#0          1980-12-19#PERSON#P1          an entry of Person.born, in shard 0
    HAS_SKILL#skill#2      python#PERSON#P1#HAS_SKILL#SKILL#S7

The partition names the class, the field and the shard. The sort key is the value, spelled so that
text order is the order of the values, and behind it the key of the entity: so no two entries are
equal, and an order over all shards is an order that a page can go on in.

An item is in an index once. So the first indexed field of a class is indexed by the entity's own
item, and each further one by a satellite: a copy of the item under a key of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from adjoin.errors import InvalidKey, InvalidModel, InvalidValue
from adjoin.fields import Comparison
from adjoin.layouts.interface import Index
from adjoin.layouts.keys import SEPARATOR, Quoting, check_length, sortable_text
from adjoin.layouts.shard_book import ShardBook
from adjoin.requests import SortCondition
from adjoin.schema import EntityType, Schema, path_type, plain_type, unknown_field
from adjoin.units import MAX_SORT_KEY_SIZE
from adjoin.values import Item, encode

_QUOTING = Quoting(frozenset(SEPARATOR), escape=True)
_STEP = "$"
"""Between the steps of a path. It sorts behind the separator and before every quoted character."""
_BEYOND = "%"
"""The least character that a value can go on with."""
_NO_TEXT = "%"
"""A step of a path that is empty text: it sorts before every other step, and a path of it behind the empty path."""


def indexed_text(value: Any) -> str:
    """A spelling without separators whose text order is the order of the values."""
    if isinstance(value, tuple | list):
        return _STEP.join(indexed_text(step) or _NO_TEXT for step in value)
    if isinstance(value, float):
        value = Decimal(encode(value)["N"])
    return _QUOTING.quote(sortable_text(int(value) if isinstance(value, bool) else value))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sort keys from `low` to `high`, both included; or all that begin with `prefix`.

    `value` is the text of the one value that all of them have, if they have one.
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
        """Whether entries of a value, given by its text, can lie in the stretch."""
        if self.prefix is not None:
            return value.startswith(self.prefix)
        return self.low < value + _STEP and (self.high is None or value + SEPARATOR <= self.high)

    def side_of(self, key: str) -> int:
        """Whether a sort key lies before the stretch (-1), in it (0) or behind it (1)."""
        if self.prefix is not None:
            return 0 if key.startswith(self.prefix) else -1 if key < self.prefix else 1
        return -1 if key < self.low else 1 if self.high is not None and key > self.high else 0

    def narrowed(self, other: Stretch) -> Stretch:
        """What lies in both; neither is given by a prefix."""
        highs = [high for high in (self.high, other.high) if high is not None]
        return Stretch(max(self.low, other.low), min(highs, default=None), None, self.value or other.value)


@dataclass(frozen=True)
class IndexedField:
    """One indexed field of one class."""

    kind: EntityType
    name: str
    is_own: bool
    """Whether the entity's own item is the entry, rather than a satellite."""

    @property
    def scope(self) -> str:
        """What the partitions of its entries begin with."""
        return f"{self.kind.label}{SEPARATOR}{self.name}"

    @property
    def _is_path(self) -> bool:
        return path_type(self.kind.fields[self.name]) is not None

    @property
    def _is_number(self) -> bool:
        plain = plain_type(self.kind.fields[self.name])
        if plain is not None and issubclass(plain, Enum):
            return any(isinstance(member.value, int | Decimal) for member in plain)
        return plain is not None and issubclass(plain, int | float | Decimal)

    def stretches(self, comparison: Comparison) -> tuple[Stretch, ...] | None:
        """Where the entries lie for which a comparison of the field holds; None if the index cannot tell."""
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

    def _prefixed(self, prefix: Any) -> Stretch:
        if self._is_path:
            if not isinstance(prefix, tuple | list):
                raise InvalidValue(
                    f"{self.kind.name}.{self.name} is a path, and begins with a path: pass its first steps in a tuple"
                )
            text = indexed_text(prefix)
            return Stretch(text + SEPARATOR, text + _BEYOND) if prefix else Stretch()
        if not isinstance(prefix, str) or self._is_number:
            raise InvalidValue(
                f"{self.kind.name}.{self.name} cannot begin with {prefix!r}: a prefix is text, of a field that is "
                f"spelled as text; use between for a range"
            )
        return Stretch(prefix=self._checked(_QUOTING.quote(prefix)))

    def text(self, value: Any) -> str:
        """The spelling of a value of the field, which is checked against its type."""
        value = self.kind.coerced(self.name, value)
        try:
            text = indexed_text(value)
        except InvalidKey as error:
            raise InvalidKey(f"{self.kind.name}.{self.name}: {error}") from None
        return self._checked(text)

    def _checked(self, text: str) -> str:
        # Behind the value there is a separator at least.
        check_length(
            text, MAX_SORT_KEY_SIZE - 1, f"a value of {self.kind.name}.{self.name} in its index", "a shorter one"
        )
        return text


class OverloadedIndex:
    """The entries of all indexed fields of one schema."""

    def __init__(self, index: Index, schema: Schema, prefix: str, book: ShardBook) -> None:
        if index.sort_key is None:
            raise InvalidModel(f"the index {index.name!r} is for indexed fields, whose order needs a sort key")
        self.name = index.name
        self.partition_key, self.sort_key = index.partition_key, index.sort_key
        self.is_partial = index.projection.kind != "ALL"
        self.book = book
        self._prefix = prefix
        self._fields: Mapping[type[Any], tuple[IndexedField, ...]] = {
            kind.model: tuple(IndexedField(kind, name, place == 0) for place, name in enumerate(kind.indexed))
            for kind in schema.types
        }

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(each.scope for fields in self._fields.values() for each in fields)

    def fields(self, kind: EntityType) -> tuple[IndexedField, ...]:
        return self._fields[kind.model]

    def field(self, kind: EntityType, name: str) -> IndexedField:
        fields = {each.name: each for each in self.fields(kind)}
        if name not in fields:
            kind.attribute(name)
            raise InvalidKey(unindexed(kind, name))
        return fields[name]

    def partition(self, scope: str, shard: object) -> str:
        return f"{self._prefix}{scope}{SEPARATOR}{shard}"

    def entry(self, field: IndexedField, value: Any, tail: str, size: int) -> Item:
        """The key attributes of an entry for a value, of the entity with that key; nothing for None."""
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
        """What the entries of each field look like, for entities whose key has this template."""
        return {
            each.name: {
                self.partition_key: self.partition(each.scope, "{shard}"),
                self.sort_key: f"{{{each.name}}}{SEPARATOR}{tail}",
            }
            for each in self.fields(kind)
        }

    def partitions(self, field: IndexedField, stretch: Stretch) -> list[str]:
        """Where entries of a stretch may lie, as far as this graph knows."""
        if stretch.value is not None:
            shards = self.book.places(field.scope, stretch.value)
        else:
            shards = self.book.all_places(field.scope, stretch.may_hold)
        return [self.partition(field.scope, shard) for shard in shards]


def unindexed(kind: EntityType, name: str) -> str:
    if name not in kind.attributes:
        return unknown_field(kind.name, name, kind.attributes)
    indexed = ", ".join(map(repr, kind.indexed)) or "none"
    return f"{kind.name}.{name} is not indexed (of {kind.name}: {indexed}); mark it with Indexed() to find by it"
