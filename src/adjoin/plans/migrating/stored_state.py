"""What the states of all migrations have in common: their stages, and how a record in a table has their fields.

`passes` has the state of a migration in its table, and `move_state` that of one into another table.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, TypeAlias

from adjoin.values import Item, decode

MigrationStage: TypeAlias = Literal["reading", "waiting", "following", "counting", "ended"]

STATE = "adjoin:migration"
"""The attribute of a record that has the state."""
_FLOATS = ("begun", "looked", "asked", "rcu", "wcu", "seconds", "at")
"""The fields of states that are floats. They are stored as text, because a stored number is never read as a float."""


class StoredState:
    """The state of a migration, as a record in a table has it."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def plain(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "item"}
        return plain | {name: repr(plain[name]) for name in _FLOATS if name in plain}

    @classmethod
    def of_item(cls, item: Item) -> Self:
        plain = decode(item[STATE])
        floats = {name: float(plain[name]) for name in _FLOATS if name in plain}
        return cls(**{**plain, **floats, "starts": dict(plain["starts"]), "item": item})
