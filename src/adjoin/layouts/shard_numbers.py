"""How many shards the partition key of an index has, as far as a graph knows.

The number is stored in the table, in one record for each key attribute:

    PK           SK                 adjoin:shards
    #=RECORDS    =SHARDS#GSI1PK     {first: 0, version: 1, epochs: [[4, 0], [8, 1775000000]], values: []}

The record belongs to the table, and so to all its tenants. It is written with a new table, and when the number is
raised; a table without it has the number that a program declares. What a record says is a shard map without hot values
(see `sharding.maps`): it only grows, and nobody writes to new shards before every reader knows them.

A program that declares fewer shards than the record uses those of the record. One that declares more is refused: either
the number has not been raised yet, or there may be items that other programs do not look for.

`ShardedTemplate` is the template of such a key, in which a hash of other values chooses the shard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from adjoin.errors import InvalidItem, InvalidKey, InvalidValue, TableMismatch, shown
from adjoin.layouts.key_values import key_text, value_of
from adjoin.layouts.keys import SHARD, Part, Quoting, Template
from adjoin.model import SHARDS_READ
from adjoin.sharding.maps import Epoch, ShardMap, jump_hash, stable_hash
from adjoin.tables import KeyType
from adjoin.values import Item, decode, encode

SHARDS, VERSION = "adjoin:shards", "adjoin:version"
"""The attributes of a record. No key of an index is called so."""
MOST_SHARDS = 10_000
"""The greatest number that is stored: a find asks all shards, so a greater one would be a mistake."""


class ShardNumber:
    """The shards of a key attribute, shared by all indexes over it and by all tenants."""

    def __init__(
        self,
        attribute: str,
        indexes: tuple[str, ...],
        declared: range | None,
        clock: Callable[[], float] = time.time,
        *,
        is_recorded: bool = True,
    ) -> None:
        """`declared` is None for adaptive shards, which have no number unless the table has one.

        `is_recorded`: whether the table can hold a record. If not, the declared number holds.
        """
        self.is_recorded = is_recorded
        self.attribute, self.indexes, self.declared = attribute, indexes, declared
        self.clock = clock
        self.known: ShardMap | None
        """The shards that this graph knows; None if they are adaptive."""
        self._first, self.known = self._declared_map()
        self._read_at: float | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether there is a number: one that is declared, or one that the table has."""
        return self.known is not None

    @property
    def all(self) -> range:
        """The shards in which an item may be."""
        return range(self._first, self._first + self._known.shards_of())

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        return self._known.epochs

    @property
    def may_move(self) -> bool:
        """Whether an item that is put again unchanged may move to another shard."""
        return self.known is not None and self.known.version > 0

    @property
    def is_stale(self) -> bool:
        """Whether a reader must read the record again, because its lease is over or the clock was set back."""
        if self.known is None or not self.is_recorded:
            return False
        return self._read_at is None or not 0 <= self.clock() - self._read_at < self.known.lease

    @property
    def _known(self) -> ShardMap:
        assert self.known is not None
        return self.known

    def place(self, text: str) -> int:
        """The shard for a new item whose key, or whose chosen fields, have this text."""
        return self._first + jump_hash(stable_hash(text), self._known.writable(self.clock()))

    def places(self, text: str) -> set[int]:
        """The shards in which an item with this text is, whenever it was put."""
        key = stable_hash(text)
        return {self._first + jump_hash(key, epoch.shards) for epoch in self.epochs}

    def learn(self, record: Item | None, read_at: float) -> None:
        """Notes what the table says, as it was at that time, unless something newer is known."""
        first, stored = self.read(record)
        # Answers may arrive in another order than they were asked for, and a number is never lowered.
        if stored is not None and (self.known is None or stored.version >= self.known.version):
            self._first, self.known = first, stored
        self._read_at = read_at

    def read(self, record: Item | None) -> tuple[int, ShardMap | None]:
        """The first shard and the map of a record; those that are declared if there is none.

        Raises if the program cannot find everything with what it declares.
        """
        if record is None:
            return self._declared_map()
        first, stored = self._parsed(record)
        if self.declared is None:
            return first, stored
        there = range(first, first + stored.shards_of())
        if first != self.declared.start:
            raise TableMismatch(
                f"the layout declares shards={self.declared} for {self.name}, but the table has {there}; "
                f"declare shards={there}"
            )
        if len(self.declared) > len(there):
            raise TableMismatch(
                f"the layout declares {len(self.declared)} shards for {self.name}, but the table has {len(there)}; "
                f"raise the number of the table with adjoin shards, or declare {len(there)}"
            )
        return first, stored

    @property
    def name(self) -> str:
        """The indexes, for messages."""
        return f"the index{'es' if len(self.indexes) > 1 else ''} {' and '.join(map(repr, self.indexes))}"

    def stored(self, record: Item | None) -> ShardMap | None:
        """What a record says, whatever is declared; None if there is no record."""
        return None if record is None else self._parsed(record)[1]

    def _declared_map(self) -> tuple[int, ShardMap | None]:
        """The first shard and the map that are declared; None for adaptive shards."""
        if self.declared is None:
            return 0, None
        return self.declared.start, ShardMap((Epoch(len(self.declared), 0.0),))

    def _parsed(self, record: Item) -> tuple[int, ShardMap]:
        try:
            plain: Mapping[str, Any] = decode(record[SHARDS])
            first, stored = int(plain["first"]), ShardMap.from_plain(plain)
            if first < 0 or stored.shards_of() > MOST_SHARDS or stored.values:
                raise InvalidValue(f"{stored.shards_of():,} shards from {first} on")
        except (KeyError, TypeError, ValueError, AttributeError, InvalidItem, InvalidValue) as error:
            raise InvalidItem(
                f"the record of the number of shards of {self.name} cannot be read: {error}; another program has "
                f"changed it, so delete it, and set the number again with adjoin shards"
            ) from None
        return first, stored

    def record(self, shards: ShardMap, first: int) -> Item:
        """The attributes of a record."""
        return {SHARDS: encode({"first": first, **shards.to_plain()}), VERSION: {"N": str(shards.version)}}

    def raised(self, record: Item | None, number: int) -> Item | None:
        """The attributes of the record with a higher number; None if it has that number already."""
        first, stored = self._declared_map() if record is None else self._parsed(record)
        if stored is None:
            raise InvalidValue(f"{self.name} has adaptive shards, which grow as they are needed; leave it as it is")
        now = stored.shards_of()
        if type(number) is not int or not now <= number <= MOST_SHARDS:
            raise InvalidValue(
                f"number of shards of {self.name} must be from {now} to {MOST_SHARDS:,}, got {shown(number)}; "
                f"it can be raised, and never lowered"
            )
        if number > now:
            return self.record(stored.grown(self.clock(), number), first)
        # The table had no record yet, so the present number is recorded for all programs.
        return None if record is not None else self.record(stored, first)


# --- templates with a shard -----------------------------------------------------------------------


class ShardedTemplate(Template):
    """A template with the placeholder {shard}, which a hash of other values fills."""

    def __init__(
        self,
        owner: str,
        pieces: list[str | Part],
        quoting: Quoting,
        type: KeyType,
        number: ShardNumber,
        by: tuple[str, ...] | tuple[Template, ...],
    ) -> None:
        """`by` names the values that choose the shard, or has the templates of the key that does."""
        super().__init__(owner, pieces, quoting, type)
        self.number = number
        self._by = by
        own = [name for name in self.names if name != SHARD]
        chosen_by = [name for each in by for name in (each.names if isinstance(each, Template) else (each,))]
        self.names = tuple(dict.fromkeys([*own, *chosen_by]))

    def render(self, values: Mapping[str, Any]) -> str:
        if SHARD in values:
            return super().render(values)
        choice = self.choice(values)
        kept = values.get(SHARDS_READ)
        # The item was read in some shard. A put leaves it there, as long as the same values choose the shard.
        if kept is not None:
            chosen_by, shard = kept.get(self.number.attribute, ("", None))
            if chosen_by == choice and shard in self.number.all:
                return super().render({**values, SHARD: shard})
        return super().render({**values, SHARD: self.number.place(choice)})

    @property
    def is_by_key(self) -> bool:
        """Whether the key of the item chooses the shard."""
        return any(isinstance(each, Template) for each in self._by)

    def choice(self, values: Mapping[str, Any]) -> str:
        """The text that chooses the shard."""
        texts = [
            each.render(values) if isinstance(each, Template) else key_text(_needed(self.owner, values, each))
            for each in self._by
        ]
        return "\0".join(texts)

    def foreign(self, key: str, choice: str) -> int | None:
        """The shard in a key, if it is one that adjoin would never have chosen; None if it is adjoin's own."""
        told = self.match(key)
        shard = None if told is None else value_of(int, told[SHARD])
        return shard if shard in self.number.all and shard not in self.number.places(choice) else None

    def in_shards(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The keys with these values in all shards."""
        return tuple(self.render({**values, SHARD: shard}) for shard in self.number.all)


def _needed(owner: str, values: Mapping[str, Any], name: str) -> Any:
    if values[name] is None:
        raise InvalidKey(f"{owner}.{name} is None, but it chooses the shard of an index key; give it a value")
    return values[name]
