"""Aggregates and copies as they are declared, on the fields that hold them.

    invoices: Annotated[int, Count("Placed")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)
    customer_name: Annotated[str, Copy("source.name")] = ""

A declaration only records what it was told. What it means for the classes of a graph is worked out by
`adjoin.rules` when the graph opens, so edges may be named before they are declared.

Edges are named by class or by name; several are a path, one hop each. A hop goes the way its edge
leads, or against it where only that fits; `direction` tells where an edge joins a class to itself.
`field` and the fields of `where` are those of the last edge, or else of the node it leads to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adjoin.errors import InvalidModel, shown
from adjoin.fields import Predicate

Direction: TypeAlias = Literal["out", "into"]
Consistency: TypeAlias = Literal["stream", "transaction"]
EdgeName: TypeAlias = str | type[Any]


@dataclass(frozen=True, slots=True, init=False)
class Aggregate:
    """What all aggregates over edges are told."""

    edges: tuple[EdgeName, ...]
    field: str | None
    where: Predicate | None
    direction: Direction
    recursive: bool
    consistency: Consistency

    def __init__(
        self,
        *edges: EdgeName,
        field: str | None = None,
        where: Predicate | None = None,
        direction: Direction = "out",
        recursive: bool = False,
        consistency: Consistency = "stream",
    ) -> None:
        name = type(self).__name__
        if not edges:
            raise InvalidModel(f"{name} needs an edge to go over; pass its class or its name")
        if direction not in ("out", "into"):
            raise InvalidModel(f'the direction of {name} is "out" or "into", not {direction!r}')
        if consistency not in ("stream", "transaction"):
            raise InvalidModel(f'the consistency of {name} is "stream" or "transaction", not {consistency!r}')
        if where is not None and not isinstance(where, Predicate):
            raise InvalidModel(f'the where= of {name} is a comparison such as field("status") == "open", not {where!r}')
        if recursive and len(edges) > 1:
            raise InvalidModel(f"a recursive {name} goes over one edge again and again; pass one")
        for attribute, value in (
            ("edges", edges),
            ("field", field),
            ("where", where),
            ("direction", direction),
            ("recursive", recursive),
            ("consistency", consistency),
        ):
            object.__setattr__(self, attribute, value)


@dataclass(frozen=True, slots=True, init=False)
class Count(Aggregate):
    """How many edges there are."""


@dataclass(frozen=True, slots=True, init=False)
class Sum(Aggregate):
    """The sum of a field."""


@dataclass(frozen=True, slots=True, init=False)
class Min(Aggregate):
    """The least value of a field; None without edges."""


@dataclass(frozen=True, slots=True, init=False)
class Max(Aggregate):
    """The greatest value of a field; None without edges."""


@dataclass(frozen=True, slots=True, init=False)
class Latest(Aggregate):
    """The value of a field on the edge that is last by another, `by`, which is else the edge's order.

    An edge without an order goes by the field itself, if that is a date.
    """

    by: str | None

    def __init__(self, *edges: EdgeName, by: str | None = None, **options: Any) -> None:
        Aggregate.__init__(self, *edges, **options)
        object.__setattr__(self, "by", by)


@dataclass(frozen=True, slots=True, init=False)
class Top(Aggregate):
    """The greatest `k` values of a field, from the greatest on."""

    k: int

    def __init__(self, *edges: EdgeName, k: int = 10, **options: Any) -> None:
        Aggregate.__init__(self, *edges, **options)
        _check_count("Top", k)
        object.__setattr__(self, "k", k)


def _check_count(name: str, k: Any) -> None:
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise InvalidModel(f"{name} takes so many values, at least 1; {k!r} cannot be")


# --- what only a batch job fills ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summary:
    """What all batch summaries are told: the edge that they go over."""

    edge: EdgeName


@dataclass(frozen=True, slots=True)
class PageRank(Summary):
    """How much the nodes that lead here count for, and those that lead to them; all ranks add up to 1.

    They are computed until they change no more to speak of, at most in so many iterations.
    """

    damping: float = 0.85
    iterations: int = 100

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise InvalidModel(f"the damping of PageRank is a part of 1, such as 0.85; {self.damping!r} cannot be")
        if self.iterations < 1:
            raise InvalidModel(f"PageRank takes so many iterations, at least 1; {self.iterations!r} cannot be")


@dataclass(frozen=True, slots=True)
class Components(Summary):
    """The least id of all nodes that can be reached over edges, whichever way they lead."""


@dataclass(frozen=True, slots=True)
class CommonNeighbours(Summary):
    """The ids of the `k` nodes with the most neighbours in common, most first."""

    k: int = 10

    def __post_init__(self) -> None:
        _check_count("CommonNeighbours", self.k)


# --- copies ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Copy:
    """A field of an edge that repeats one of a node at its end: "target.name" or "source.name"."""

    path: str

    def __post_init__(self) -> None:
        end, dot, name = self.path.partition(".") if isinstance(self.path, str) else ("", "", "")
        if end not in ("source", "target") or not dot or not name or "." in name:
            raise InvalidModel(f'{shown(self.path)} names no field to copy; write "target.name" or "source.name"')

    @property
    def end(self) -> str:
        return self.path.partition(".")[0]

    @property
    def field(self) -> str:
        return self.path.partition(".")[2]


@dataclass(frozen=True, slots=True)
class Immutable:
    """Marks a field of a node that never changes once it is written, so that copies of it stay true."""
