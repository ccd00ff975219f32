"""Classes with every kind of aggregate, and what each should be, worked out by looking at everything.

`expected` knows nothing of rules and ledgers: it is written by hand for these classes, from what their
declarations say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Annotated, Any

from adjoin import Edge, Node, field
from adjoin.aggregates import Copy, Count, Latest, Max, Min, Sum, Top


class Customer(Node):
    id: str
    name: str = ""
    invoices: Annotated[int, Count("Placed")] = 0
    open: Annotated[int, Count("Placed", where=field("status") == "open")] = 0
    owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)
    smallest: Annotated[Decimal | None, Min("Placed", field="balance")] = None
    largest: Annotated[Decimal | None, Max("Placed", field="balance", where=field("status") != "paid")] = None
    last: Annotated[str | None, Latest("Placed", field="status", by="day")] = None
    top: Annotated[list[Decimal], Top("Placed", field="balance", k=2)] = []
    bills: Annotated[int, Count("Placed", "Contains")] = 0
    worth: Annotated[Decimal, Sum("Placed", "Contains", field="amount")] = Decimal(0)
    dearest: Annotated[Decimal | None, Max("Placed", "Contains", field="amount")] = None
    newest: Annotated[str | None, Latest("Placed", "Contains", field="note", by="day")] = None
    best: Annotated[list[Decimal], Top("Placed", "Contains", field="amount", k=2)] = []
    weight: Annotated[int, Sum("Placed", field="weight", where=field("kind") == "x")] = 0


class Invoice(Node):
    id: str
    kind: str = "x"
    weight: int = 1
    customers: Annotated[int, Count("Placed")] = 0


class Bill(Node):
    id: str
    amount: Decimal | None = None


class Placed(Edge[Customer, Invoice]):
    customer: Annotated[str, Copy("source.name")] = ""
    kind: Annotated[str | None, Copy("target.kind")] = None
    balance: Decimal | None = None
    status: str = "open"
    day: int = 0


class Contains(Edge[Invoice, Bill]):
    note: str = ""
    day: int = 0


class Album(Node):
    id: str
    title: str = ""
    tracks: Annotated[int, Count("OnAlbum", consistency="transaction")] = 0
    seconds: Annotated[int, Sum("OnAlbum", field="seconds", consistency="transaction")] = 0
    live: Annotated[int, Count("OnAlbum", where=field("live") == True, consistency="transaction")] = 0  # noqa: E712
    longest: Annotated[int | None, Max("OnAlbum", field="seconds")] = None


class Track(Node):
    id: str
    title: str = ""
    albums: Annotated[int, Count("OnAlbum", consistency="transaction")] = 0


class OnAlbum(Edge[Album, Track]):
    seconds: int = 0
    live: bool = False
    title: Annotated[str, Copy("target.title")] = ""


class Part(Node):
    id: str
    cost: int = 0
    total: Annotated[int, Sum("Uses", field="cost", recursive=True)] = 0
    below: Annotated[int, Count("Uses", recursive=True)] = 0
    dearest: Annotated[int | None, Max("Uses", field="cost", recursive=True)] = None


class Uses(Edge[Part, Part]):
    pass


class Person(Node):
    id: str
    age: int = 0
    following: Annotated[int, Count("Follows")] = 0
    followers: Annotated[int, Count("Follows", direction="into")] = 0
    reach: Annotated[int, Count("Follows", "Follows")] = 0
    friends: Annotated[int, Count("Friend")] = 0
    eldest: Annotated[int | None, Max("Friend", field="age")] = None


class Follows(Edge[Person, Person]):
    pass


class Friend(Edge[Person, Person], symmetric=True):
    pass


SHOP = [Customer, Invoice, Bill, Placed, Contains]
ALBUMS = [Album, Track, OnAlbum]
PARTS = [Part, Uses]
PEOPLE = [Person, Follows, Friend]
MODELS: list[type[Any]] = [*SHOP, *ALBUMS, *PARTS, *PEOPLE]


class World:
    """Everything that is stored, as nodes and edges."""

    def __init__(self, entities: Iterable[Any], aside: set[tuple[str, str, str]]) -> None:
        self._nodes: dict[tuple[type[Any], str], Any] = {}
        self._edges: list[Any] = []
        self.aside = aside
        """Recursive fields of parts, and the ends of edges that are set aside for them."""
        for entity in entities:
            if isinstance(entity, Node):
                self._nodes[type(entity), entity.__dict__["id"]] = entity
            else:
                self._edges.append(entity)

    def all(self, model: type[Any]) -> list[Any]:
        return [node for (kind, _), node in self._nodes.items() if kind is model]

    def node(self, model: type[Any], id: str) -> Any:
        return self._nodes.get((model, id))

    def out(self, model: type[Any], id: str) -> list[Any]:
        return [edge for edge in self._edges if type(edge) is model and edge.source == id]

    def into(self, model: type[Any], id: str) -> list[Any]:
        return [edge for edge in self._edges if type(edge) is model and edge.target == id]

    def edges(self, model: type[Any]) -> list[Any]:
        return [edge for edge in self._edges if type(edge) is model]

    def everything(self) -> list[Any]:
        return [*self._nodes.values(), *self._edges]


def expected(world: World, node: Any) -> dict[str, Any]:
    """What each aggregate on a node, or copy on an edge, should be."""
    return _EXPECTED[type(node)](world, node) if type(node) in _EXPECTED else {}


def _customer(world: World, node: Any) -> dict[str, Any]:
    placed = world.out(Placed, node.id)
    balances = sorted((edge.balance for edge in placed if edge.balance is not None), reverse=True)
    unpaid = [edge.balance for edge in placed if edge.status != "paid" and edge.balance is not None]
    invoices = [invoice for edge in placed if (invoice := world.node(Invoice, edge.target)) is not None]
    contained = [edge for invoice in invoices for edge in world.out(Contains, invoice.id)]
    amounts = [bill.amount for edge in contained if (bill := world.node(Bill, edge.target)) and bill.amount is not None]
    return {
        "invoices": len(placed),
        "open": sum(edge.status == "open" for edge in placed),
        "owed": sum(balances, Decimal(0)),
        "smallest": min(balances, default=None),
        "largest": max(unpaid, default=None),
        "last": max(((edge.day, edge.status) for edge in placed), default=(0, None))[1],
        "top": balances[:2],
        "bills": len(contained),
        "worth": sum(amounts, Decimal(0)),
        "dearest": max(amounts, default=None),
        "newest": max(((edge.day, edge.note) for edge in contained), default=(0, None))[1],
        "best": sorted(amounts, reverse=True)[:2],
        "weight": sum(invoice.weight for invoice in invoices if invoice.kind == "x"),
    }


def _album(world: World, node: Any) -> dict[str, Any]:
    tracks = world.out(OnAlbum, node.id)
    return {
        "tracks": len(tracks),
        "seconds": sum(edge.seconds for edge in tracks),
        "live": sum(edge.live for edge in tracks),
        "longest": max((edge.seconds for edge in tracks), default=None),
    }


def _track(world: World, node: Any) -> dict[str, Any]:
    return {"albums": len(world.into(OnAlbum, node.id))}


def _placed(world: World, edge: Any) -> dict[str, Any]:
    customer, invoice = world.node(Customer, edge.source), world.node(Invoice, edge.target)
    return {"customer": customer.name if customer else "", "kind": invoice.kind if invoice else None}


def _on_album(world: World, edge: Any) -> dict[str, Any]:
    track = world.node(Track, edge.target)
    return {"title": track.title if track else ""}


def _invoice(world: World, node: Any) -> dict[str, Any]:
    return {"customers": len(world.into(Placed, node.id))}


def uses(world: World, id: str, name: str) -> list[Any]:
    """The edges from a part that are applied for a field."""
    return [edge for edge in world.out(Uses, id) if (name, edge.source, edge.target) not in world.aside]


def _part(world: World, node: Any) -> dict[str, Any]:
    costs = _costs(world, node, "dearest")
    return {
        "total": sum(cost or 0 for cost in _costs(world, node, "total")),
        "below": len(_costs(world, node, "below")),
        "dearest": max((cost for cost in costs if cost is not None), default=None),
    }


def _costs(world: World, node: Any, name: str) -> list[int | None]:
    """What each edge below a part leads to costs; a part that is used twice counts twice."""
    costs: list[int | None] = []
    waiting = uses(world, node.id, name)
    while waiting:
        part = world.node(Part, waiting.pop().target)
        costs.append(None if part is None else part.cost)
        if part is not None:
            waiting += uses(world, part.id, name)
    return costs


def _person(world: World, node: Any) -> dict[str, Any]:
    following = world.out(Follows, node.id)
    # A symmetric edge is stored at both ends, so those that leave are all.
    friends = [friend for edge in world.out(Friend, node.id) if (friend := world.node(Person, edge.target)) is not None]
    followed = [edge.target for edge in following if world.node(Person, edge.target) is not None]
    return {
        "following": len(following),
        "followers": len(world.into(Follows, node.id)),
        "reach": sum(len(world.out(Follows, id)) for id in followed),
        "friends": len(world.out(Friend, node.id)),
        "eldest": max((friend.age for friend in friends), default=None),
    }


_EXPECTED: dict[type[Any], Callable[[World, Any], dict[str, Any]]] = {
    Customer: _customer,
    Invoice: _invoice,
    Album: _album,
    Track: _track,
    Placed: _placed,
    OnAlbum: _on_album,
    Part: _part,
    Person: _person,
}
