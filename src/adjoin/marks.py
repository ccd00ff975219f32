"""What a class says about single fields: marks such as `Annotated[str, Indexed()]`, and what goes with them.

A mark is a value without behaviour. `field_types` finds out which fields of a class have it, and `schema` whether the
class may. So marks can be declared in any order, and this module knows no class, no key and no table. Marks of computed
fields are in `aggregates`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias

from adjoin.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Indexed:
    """Marks a field by which `find` finds nodes or edges. A value of None is not indexed.

    A list or tuple is a path, which is found from its beginning on. With `elements=True`, each element of a list, tuple
    or set is found by itself: `find(Post, field("tags").contains("python"))`.
    """

    elements: bool = False


@dataclass(frozen=True, slots=True)
class Unique:
    """Marks a field of a node whose value no other node of the class may have. `get` finds a node by it."""


@dataclass(frozen=True, slots=True)
class Version:
    """Marks an int field that each write increases by 1.

    An instance replaces or deletes what is stored only if the stored version is its own; otherwise the call raises
    `ConditionFailed`.
    """


@dataclass(frozen=True, slots=True)
class Stored:
    """Says in which format a field is stored, as the table has it: `Annotated[datetime, Stored("epoch")]`.

    On a `@computed_field`, it says that the field is stored, with or without a format.

    Formats of a datetime are "epoch", "epoch_ms" and a date format such as "%Y-%m-%dT%H:%M:%SZ"; of a date, a date
    format; of an int, "05d" or "d"; of a Decimal, "08.2f", ".2f" or "f". `type` is "S" for text or "N" for a number,
    if that is not what the format has anyway.
    """

    format: str | None = None
    type: Literal["S", "N"] | None = None


@dataclass(frozen=True, slots=True)
class Expires:
    """Marks a datetime field: after that time, DynamoDB may delete the item (its time to live).

    The field may also be an int, of seconds since 1970, as the table has it.
    """


# --- versions ----------------------------------------------------------------------------------


class Own(Enum):
    """The default of `if_version`: the version that the instance itself has."""

    VERSION = "version"


OWN_VERSION: Final = Own.VERSION
IfVersion: TypeAlias = int | Literal[Own.VERSION] | None
"""A version to compare with, None to replace whatever is stored, or the version of the instance."""
