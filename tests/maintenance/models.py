"""Classes with every kind of aggregate, and what each should be, worked out by looking at everything.

`expected` knows nothing of rules and ledgers: it is written by hand for these classes, from what their
declarations say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Annotated, Any

from adjoin import Child, Edge, Node, field
from adjoin.aggregates import Copy, Count, Latest, Max, Min, Sum, Top
from adjoin.model import node_id


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


class Wallet(Node):
    id: str
    name: str = ""
    payments: Annotated[int, Count("Payment")] = 0
    spent: Annotated[Decimal, Sum("Payment", field="amount")] = Decimal(0)
    rents: Annotated[int, Count("Payment", where=(field("kind") == "rent") & (field("number") > 0))] = 0
    smallest: Annotated[Decimal | None, Min("Payment", field="amount")] = None
    largest: Annotated[Decimal | None, Max("Payment", field="amount", where=field("kind") != "rent")] = None
    last: Annotated[str | None, Latest("Payment", field="kind")] = None
    newest: Annotated[int | None, Latest("Payment")] = None
    top: Annotated[list[Decimal], Top("Payment", field="amount", k=2)] = []
    refunds: Annotated[int, Count("Payment", "Refund")] = 0
    dearest: Annotated[int | None, Max("Payment", "Refund", field="amount")] = None
    returned: Annotated[int, Sum("Payment", field="returned")] = 0
    back: Annotated[int | None, Latest("Payment", field="returned", by="number", where=field("refunds") > 0)] = None
    settings: Annotated[int, Count("Settings")] = 0


class Payment(Child[Wallet], key=("number",)):
    number: int
    amount: Decimal | None = None
    kind: str = "rent"
    refunds: Annotated[int, Count("Refund")] = 0
    returned: Annotated[int, Sum("Refund", field="amount")] = 0
    likes: Annotated[int, Count("Likes")] = 0


class Refund(Child[Payment]):
    id: str
    amount: int = 0


class Settings(Child[Wallet], key=()):
    theme: str = ""


class Reader(Node):
    id: str
    name: str = ""
    liked: Annotated[Decimal, Sum("Likes", field="amount")] = Decimal(0)
    refunds: Annotated[int, Count("Likes", "Refund")] = 0


class Likes(Edge[Reader, Payment]):
    pass


SHOP = [Customer, Invoice, Bill, Placed, Contains]
ALBUMS = [Album, Track, OnAlbum]
PARTS = [Part, Uses]
PEOPLE = [Person, Follows, Friend]
WALLETS: list[type[Any]] = [Wallet, Payment, Refund, Settings, Reader, Likes]
MODELS: list[type[Any]] = [*SHOP, *ALBUMS, *PARTS, *PEOPLE, *WALLETS]


class World:
    """Everything that is stored, as nodes and edges."""

    def __init__(self, entities: Iterable[Any], aside: set[tuple[str, str, str]]) -> None:
        self._nodes: dict[tuple[type[Any], Any], Any] = {}
        self._edges: list[Any] = []
        self.aside = aside
        """Recursive fields of parts, and the ends of edges that are set aside for them."""
        for entity in entities:
            if isinstance(entity, Node):
                self._nodes[type(entity), node_id(entity)] = entity
            else:
                self._edges.append(entity)

    def all(self, model: type[Any]) -> list[Any]:
        return [node for (kind, _), node in self._nodes.items() if kind is model]

    def node(self, model: type[Any], id: Any) -> Any:
        return self._nodes.get((model, id))

    def children(self, model: type[Any], parent: Any) -> list[Any]:
        return [node for node in self.all(model) if node.parent == parent]

    def out(self, model: type[Any], id: Any) -> list[Any]:
        return [edge for edge in self._edges if type(edge) is model and edge.source == id]

    def into(self, model: type[Any], id: Any) -> list[Any]:
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


def _wallet(world: World, node: Any) -> dict[str, Any]:
    payments = sorted(world.children(Payment, node.id), key=lambda each: each.number)
    amounts = sorted((each.amount for each in payments if each.amount is not None), reverse=True)
    other = [each.amount for each in payments if each.kind != "rent" and each.amount is not None]
    refunds = {each.number: world.children(Refund, node_id(each)) for each in payments}
    amounts_back = [refund.amount for some in refunds.values() for refund in some]
    returned = [sum(refund.amount for refund in some) for some in refunds.values() if some]
    return {
        "payments": len(payments),
        "spent": sum(amounts, Decimal(0)),
        "rents": sum(each.kind == "rent" and each.number > 0 for each in payments),
        "smallest": min(amounts, default=None),
        "largest": max(other, default=None),
        "last": payments[-1].kind if payments else None,
        "newest": payments[-1].number if payments else None,
        "top": amounts[:2],
        "refunds": len(amounts_back),
        "dearest": max(amounts_back, default=None),
        "returned": sum(amounts_back),
        "back": returned[-1] if returned else None,
        "settings": len(world.children(Settings, node.id)),
    }


def _payment(world: World, node: Any) -> dict[str, Any]:
    refunds = world.children(Refund, node_id(node))
    return {
        "refunds": len(refunds),
        "returned": sum(refund.amount for refund in refunds),
        "likes": len(world.into(Likes, node_id(node))),
    }


def _reader(world: World, node: Any) -> dict[str, Any]:
    liked = [found for edge in world.out(Likes, node.id) if (found := world.node(Payment, edge.target)) is not None]
    return {
        "liked": sum((payment.amount for payment in liked if payment.amount is not None), Decimal(0)),
        "refunds": sum(len(world.children(Refund, node_id(payment))) for payment in liked),
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
    Wallet: _wallet,
    Payment: _payment,
    Reader: _reader,
}
