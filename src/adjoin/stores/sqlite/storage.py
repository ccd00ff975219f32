"""Where a table's rows have their index keys: which columns and SQL indexes there are, and what they hold.

Indexes come and go while other processes read with what they knew before. What they knew must go on to
read whole items, so no column and no SQL index ever means something else than before:

- A column that is added later holds a copy of an attribute, which bodies go on to hold too.
- A column whose attribute is the key of no index any more is empty, and its attribute is in bodies again.
- Columns and SQL indexes have numbers that are not used again.

Whoever writes looks at the catalogue in the same transaction, so it never writes by what was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from adjoin.tables import KeyAttribute, TableDefinition


@dataclass(frozen=True)
class FurtherColumn:
    """A column for an attribute that is a key of indexes only; None for one that no index needs any more."""

    attribute: KeyAttribute | None
    in_body: bool = False
    """Whether the attribute is in the body as well, whatever its type."""


@dataclass(frozen=True)
class Storage:
    columns: tuple[FurtherColumn, ...]
    """k1, k2, …"""
    indexes: dict[str, int]
    """The numbers of the SQL indexes, by the names of the indexes."""
    next_index: int
    """The number of the next SQL index."""
    stream_start: int = 0
    """The number of the last change before the stream that is kept now."""
    sums: bool = False
    """Whether rows have sums, by which damage is noticed."""

    @classmethod
    def of(cls, definition: TableDefinition, sums: bool = False) -> Storage:
        """That of a new table."""
        further = definition.key_attributes[len(definition.keys) :]
        numbers = {index.name: number for number, index in enumerate(definition.indexes)}
        return cls(tuple(FurtherColumn(key) for key in further), numbers, len(numbers), sums=sums)

    @cached_property
    def in_body(self) -> frozenset[str]:
        """The key attributes that bodies hold although their columns do."""
        return frozenset(each.attribute.name for each in self.columns if each.attribute is not None and each.in_body)

    def column(self, attribute: KeyAttribute) -> str:
        """The name of the column of an attribute."""
        return next(f"k{number}" for number, each in enumerate(self.columns, 1) if each.attribute == attribute)

    def changed(self, definition: TableDefinition) -> Storage:
        """That of the table when it is so defined: columns that are needed no more are empty, new ones come last."""
        wanted = definition.key_attributes[len(definition.keys) :]
        columns = [each if each.attribute in wanted else FurtherColumn(None) for each in self.columns]
        columns += [
            FurtherColumn(key, in_body=True) for key in wanted if all(each.attribute != key for each in self.columns)
        ]
        known = {index.name: index for index in definition.indexes}
        indexes = {name: number for name, number in self.indexes.items() if name in known}
        new = [name for name in known if name not in indexes]
        indexes |= {name: number for number, name in enumerate(new, self.next_index)}
        return replace(self, columns=tuple(columns), indexes=indexes, next_index=self.next_index + len(new))
