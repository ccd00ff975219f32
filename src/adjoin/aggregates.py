"""Declarations of aggregates, summaries and copied fields, as marks on the fields that hold them.

    invoices: Annotated[int, Count("Placed")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)
    customer_name: Annotated[str, Copy("source.name")] = ""

A declaration only records its arguments. `adjoin.declarations` finds out what it means for the classes
of a graph when the graph opens, so a declaration may name an edge class that is declared later.

Edges are given by class or by name; several form a path with one hop per edge. A hop follows its edge
from source to target, or back if the classes fit only that way. Where an edge joins a class to itself,
`direction` decides. `field` and the fields of `where` belong to the last edge, or otherwise to the node
to which it leads. A class of children can stand in place of an edge; a hop leads from the parent to them.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from adjoin.dataclass import dataclass
from adjoin.errors import InvalidModel, shown
from adjoin.fields import Predicate

Direction: TypeAlias = Literal["out", "into"]
Consistency: TypeAlias = Literal["stream", "transaction"]
EdgeName: TypeAlias = str | type[Any]


@dataclass(frozen=True, slots=True, init=False)
class Aggregate:
    """The base class of all aggregates over edges and children.

    `edges` are the classes of edges or children, or their names, from the node on; several form a path. `field` is the
    field of the last edge, or of the node to which it leads, that is aggregated. `where` counts only edges for which a
    predicate holds. `direction` is "out" for edges that leave the node and "into" for those that arrive. `recursive`
    follows one edge class any number of hops; what several paths reach counts once for each path. `quantity` is a field
    of the edges by which a `Count` or a `Sum` multiplies what each of them leads to. With `distinct`, a `Count`, a
    `Sum` or an `Avg` is about the different nodes at the end of the path: each counts once, however many paths lead to
    it.
    `consistency="transaction"` updates the aggregate in the same transaction as the edge; the default, "stream", leaves
    it to `maintain`.
    """

    edges: tuple[EdgeName, ...]
    field: str | None
    where: Predicate | None
    direction: Direction
    recursive: bool
    consistency: Consistency
    quantity: str | None
    distinct: bool

    def __init__(
        self,
        *edges: EdgeName,
        field: str | None = None,
        where: Predicate | None = None,
        direction: Direction = "out",
        recursive: bool = False,
        consistency: Consistency = "stream",
        quantity: str | None = None,
        distinct: bool = False,
    ) -> None:
        name = type(self).__name__
        if not edges:
            raise InvalidModel(f"{name} needs an edge; pass the class of the edge, or its name")
        if direction not in ("out", "into"):
            raise InvalidModel(f'direction of {name} must be "out" or "into", got {shown(direction)}')
        if consistency not in ("stream", "transaction"):
            raise InvalidModel(f'consistency of {name} must be "stream" or "transaction", got {shown(consistency)}')
        if where is not None and not isinstance(where, Predicate):
            raise InvalidModel(
                f'where of {name} must be a comparison, got {shown(where)}; use field("status") == "open"'
            )
        if recursive and len(edges) > 1:
            raise InvalidModel(f"a recursive {name} follows a single edge class, got {len(edges)}; pass one")
        if quantity is not None and (len(edges) > 1 or name not in ("Count", "Sum")):
            raise InvalidModel(f"only a Count or a Sum over one edge class can have quantity=; take it out of {name}")
        if not isinstance(distinct, bool):
            raise InvalidModel(f"distinct of {name} must be True or False, got {shown(distinct)}")
        if distinct and name not in ("Count", "Sum", "Avg"):
            raise InvalidModel(f"only Count, Sum and Avg can have distinct=True; take it out of {name}")
        if distinct and quantity is not None:
            raise InvalidModel(
                f"{name} has quantity= and distinct=True, but a node that counts once is not multiplied; take one of "
                f"them out"
            )
        if distinct and consistency == "transaction":
            raise InvalidModel(
                f"{name} has distinct=True, which depends on several edges, so it cannot have "
                f'consistency="transaction"; leave consistency= out'
            )
        for attribute, value in (
            ("edges", edges),
            ("field", field),
            ("where", where),
            ("direction", direction),
            ("recursive", recursive),
            ("consistency", consistency),
            ("quantity", quantity),
            ("distinct", distinct),
        ):
            object.__setattr__(self, attribute, value)


@dataclass(frozen=True, slots=True, init=False)
class Count(Aggregate):
    """The number of edges, or with `distinct=True` of different nodes: `Annotated[int, Count("Placed")]`.

    See `Aggregate` for the arguments.
    """


@dataclass(frozen=True, slots=True, init=False)
class Sum(Aggregate):
    """The sum of a field over the edges: `Sum("Placed", field="balance")`. See `Aggregate` for the arguments."""


@dataclass(frozen=True, slots=True, init=False)
class Avg(Aggregate):
    """The mean of a field over the edges that have a value, or the default without such edges.

    It is the quotient of an exact sum and an exact count, rounded to 38 digits. See `Aggregate` for the arguments.
    """


@dataclass(frozen=True, slots=True, init=False)
class Min(Aggregate):
    """The least value of a field over the edges, or the default without edges. See `Aggregate` for the arguments."""


@dataclass(frozen=True, slots=True, init=False)
class Max(Aggregate):
    """The greatest value of a field over the edges, or the default without edges. See `Aggregate` for the arguments."""


@dataclass(frozen=True, slots=True, init=False)
class Latest(Aggregate):
    """The value of a field on the latest edge: the one with the greatest value of the field `by`.

    Without `by`, the order field of the edge decides, or the only key field of the child; without an order, the field
    itself, if it is a date. See `Aggregate` for the other arguments.
    """

    by: str | None

    def __init__(self, *edges: EdgeName, by: str | None = None, **options: Any) -> None:
        Aggregate.__init__(self, *edges, **options)
        object.__setattr__(self, "by", by)


@dataclass(frozen=True, slots=True, init=False)
class Top(Aggregate):
    """The `k` greatest values of a field over the edges, greatest first. See `Aggregate` for the other arguments."""

    k: int

    def __init__(self, *edges: EdgeName, k: int = 10, **options: Any) -> None:
        Aggregate.__init__(self, *edges, **options)
        _check_count("Top", k)
        object.__setattr__(self, "k", k)


def _check_count(name: str, k: Any) -> None:
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise InvalidModel(f"k of {name} must be a whole number of at least 1, got {k!r}")


# --- summaries, which only a batch job computes ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summary:
    """The base class of all summaries: fields that only a batch job computes, over one class of edges."""

    edge: EdgeName


@dataclass(frozen=True, slots=True)
class PageRank(Summary):
    """The PageRank of the node over one class of edges; all ranks add up to 1.

    The computation stops when the ranks hardly change any more, or after `iterations` steps. `damping` is the share
    of a rank that follows the edges.
    """

    damping: float = 0.85
    iterations: int = 100

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise InvalidModel(f"damping of PageRank must be at least 0 and less than 1, got {self.damping!r}")
        if self.iterations < 1:
            raise InvalidModel(f"iterations of PageRank must be at least 1, got {self.iterations!r}")


@dataclass(frozen=True, slots=True)
class Components(Summary):
    """The connected component of the node: the least id of all nodes that edges reach, in either direction."""


@dataclass(frozen=True, slots=True)
class CommonNeighbours(Summary):
    """The ids of the `k` nodes that share the most neighbours with the node, most first."""

    k: int = 10

    def __post_init__(self) -> None:
        _check_count("CommonNeighbours", self.k)


# --- copied fields -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Copy:
    """A field of an edge that repeats a field of one of its nodes: `Copy("target.name")` or `Copy("source.name")`."""

    path: str

    def __post_init__(self) -> None:
        end, dot, name = self.path.partition(".") if isinstance(self.path, str) else ("", "", "")
        if end not in ("source", "target") or not dot or not name or "." in name:
            raise InvalidModel(f'Copy takes a field such as "target.name" or "source.name", got {shown(self.path)}')

    @property
    def end(self) -> str:
        """The end of the edge from which the field is copied: "source" or "target"."""
        return self.path.partition(".")[0]

    @property
    def field(self) -> str:
        """The field of the node that is copied."""
        return self.path.partition(".")[2]


@dataclass(frozen=True, slots=True)
class Immutable:
    """Marks a field of a node that cannot change after it was written, so that copies of it need no maintenance.

    Fields of edges have no copies; the mark is refused there when the graph opens.
    """
