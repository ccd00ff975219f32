"""A field of nodes or edges as an array, exact: what a program reads from it is what was stored.

Whole numbers, and truth values as 0 and 1, are in 64 bits. A Decimal is a whole number of some power of ten, which is
the same for all values of the column; one with more digits after the point makes the power smaller. A float is itself.
"""

from __future__ import annotations

from array import array
from decimal import Context, Decimal
from typing import Any

import numpy as np

from adjoin.errors import InvalidValue, shown
from adjoin.snapshots.arrays import Array, grown

PLAIN = (bool, int, float, Decimal)
"""The types of fields that a snapshot can hold."""
_EXACT = Context(prec=200)
_GREATEST = 2**63 - 1


class HeldColumn:
    """The values of one field, by the number of the node or edge. A value may be None."""

    def __init__(self, owner: str, name: str, plain: type, values: Array, known: Array, scale: int = 0) -> None:
        self.owner, self.name, self.plain = owner, name, plain
        self.scale = scale
        """How many digits after the point a Decimal has at most."""
        self.hold(values, known)

    @classmethod
    def empty(cls, owner: str, name: str, plain: type, size: int = 0) -> HeldColumn:
        kind = np.float64 if plain is float else np.int64
        return cls(owner, name, plain, np.zeros(size, kind), np.zeros(size, np.bool_))

    def hold(self, values: Array, known: Array) -> None:
        """Takes these values, and where there are values."""
        self._values, self._known = values, known
        # Reading single values from a memory view takes half the time.
        self._value_view, self._known_view = values.data, known.data

    @property
    def values(self) -> Array:
        """The values as they are held; 0 where there is none."""
        return self._values

    @property
    def known(self) -> Array:
        """Where there is a value."""
        return self._known

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._known.nbytes

    def __getitem__(self, number: int) -> Any:
        return self.told(self._value_view[number]) if self._known_view[number] else None

    def told(self, held: Any) -> Any:
        """A value, or a sum of values, as the field has it."""
        if self.plain is Decimal:
            return _EXACT.scaleb(Decimal(int(held)), -self.scale)
        return bool(held) if self.plain is bool else held

    def reserve(self, size: int) -> None:
        if size > len(self._values):
            self.hold(grown(self._values, size), grown(self._known, size))

    def put(self, number: int, value: Any) -> None:
        """Sets a value; there must be room for it."""
        if value is None:
            self._known_view[number] = False
            self._value_view[number] = 0
            return
        if self.plain is Decimal:
            place = value.as_tuple().exponent
            # The value has more places than any before it, so the whole column gets as many.
            if isinstance(place, int) and -place > self.scale:
                self._rescale(-place)
        self._value_view[number] = self.number(value)
        self._known_view[number] = True

    def number(self, value: Any) -> Any:
        """A value as it is held; raises if it does not fit."""
        if self.plain is float:
            return float(value)
        number = value
        if self.plain is Decimal:
            if not value.is_finite():
                raise self.misfit(value)
            number = int(_EXACT.scaleb(value, self.scale))
        if not -_GREATEST <= number <= _GREATEST:
            raise self.misfit(value)
        return int(number)

    def misfit(self, value: Any) -> InvalidValue:
        return InvalidValue(
            f"{self.owner}.{self.name} is {shown(value)} somewhere, which does not fit into 64 bits together with the "
            f"other values; leave the field out of fields="
        )

    def _rescale(self, scale: int) -> None:
        factor = 10 ** (scale - self.scale)
        greatest = max(abs(int(self._values.min(initial=0))), abs(int(self._values.max(initial=0))))
        if greatest * factor > _GREATEST:
            raise self.misfit(Decimal(1).scaleb(-scale))
        self._values *= factor
        self.scale = scale


class Gathered:
    """The values of a column as they are read, before their order is known."""

    def __init__(self, owner: str, name: str, plain: type) -> None:
        self.name = name
        self._column = HeldColumn.empty(owner, name, plain)
        self._values: Any = [] if plain is Decimal else array("d" if plain is float else "q")
        self._absent: list[int] = []

    def append(self, value: Any) -> None:
        if value is None:
            self._absent.append(len(self._values))
            value = 0
        try:
            self._values.append(value)
        except OverflowError:
            raise self._column.misfit(value) from None

    def finished(self, order: Array | None = None) -> HeldColumn:
        """The column; `order` says which value is the first, the second and so on."""
        column, count = self._column, len(self._values)
        if column.plain is Decimal:
            places = (value.as_tuple().exponent for value in self._values if isinstance(value, Decimal))
            column.scale = max((-place for place in places if isinstance(place, int)), default=0)
            column.scale = max(column.scale, 0)
            values = np.fromiter((column.number(Decimal(value)) for value in self._values), np.int64, count)
        else:
            values = np.frombuffer(self._values, column.values.dtype).copy()
        known = np.ones(count, np.bool_)
        known[self._absent] = False
        column.hold(*(values, known) if order is None else (values[order], known[order]))
        return column
