"""What a write adds to an item, keeps of the one that is there, and refuses."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import Child, Count, Edge, Expires, Graph, Immutable, InvalidModel, InvalidValue, Node, Top
from adjoin.expressions import Compare, Exists, Not, Or, Value, attribute
from adjoin.layouts.interface import WRITTEN
from adjoin.plans import managed_fields
from adjoin.plans.managed_fields import kept_fields, unchangeable, written_items


class User(Node):
    id: str
    logins: Annotated[int, Count("Opened")] = 0


class Session(Node):
    id: str
    until: Annotated[dt.datetime | None, Expires()] = None


class Page(Node):
    id: str


class Opened(Edge[User, Session]):
    pass


class Saw(Edge[Session, Page]):
    pass


class Likes(Edge[User, Page]):
    pass


class Joined(Edge[Session, Session], symmetric=True):
    pass


class Note(Child[Session]):
    id: str


MODELS: list[Any] = [User, Session, Page, Opened, Saw, Likes, Joined, Note]


@pytest.mark.parametrize(
    ("entity", "times"),
    [
        (Opened(source="u", target="s"), [{"N": "1700"}]),
        (Saw(source="s", target="p"), [{"N": "1700"}]),
        (Joined(source="s", target="t"), [{"N": "1700"}] * 2),
        (Likes(source="u", target="p"), [None]),
        (User(id="u"), [None]),
        (Session(id="s"), [None]),
        (Note(parent="s", id="1"), [None]),
    ],
)
def test_an_edge_of_a_node_that_expires_has_the_time_of_its_write(
    entity: Any, times: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By it, an edge of the node that expired is told from one of the node that came after it."""
    monkeypatch.setattr(managed_fields, "clock", lambda: 1700.9)
    with Graph(":memory:", MODELS) as g:
        kind = g._layout.kind_of(g._layout.items(entity)[0])
        assert kind is not None
        items = written_items(g._layout, kind, entity)
        assert [item.get(WRITTEN) for item in items] == times
        # An aggregate is not written with its node.
        assert not any("logins" in item for item in items)


def test_what_stays_of_the_item_that_is_there() -> None:
    with Graph(":memory:", MODELS) as g:
        kind = g._layout.schema.node(User)
        own = {"adjoin:life": {"S": "x"}, "logins": {"N": "5"}}
        other = {"PK": {"S": "USER#u"}, "id": {"S": "u"}, "adjoin:revision": {"S": "r"}, "more": {"N": "1"}}
        assert kept_fields(g._layout, kind, own | other) == own
        assert kept_fields(g._layout, kind, None) == {}


class Account(Node):
    id: str
    owner: Annotated[str, Immutable()] = ""
    country: Annotated[str | None, Immutable()] = None
    balance: int = 0


def test_immutable_fields_are_compared_with_what_is_stored() -> None:
    with Graph(":memory:", [Account]) as g:
        kind = g._layout.schema.node(Account)
        (item,) = g._layout.items(Account(id="a", owner="ann", balance=3))
        condition: Any = unchangeable(g._layout, kind, item)
        absent = {name: Not(Exists(attribute(name))) for name in ("owner", "country")}
        owner = Or((absent["owner"], Compare("=", attribute("owner"), Value({"S": "ann"}))))
        assert sorted(map(repr, condition.conditions)) == sorted(map(repr, (owner, absent["country"])))
        g.put(Account(id="a", owner="ann", balance=3))
        g.put(Account(id="a", owner="ann", balance=4))
        for other in (Account(id="a", owner="bob"), Account(id="a", owner="ann", country="it")):
            if other.country is None:
                with pytest.raises(InvalidValue, match=r"Account.owner is immutable, and .* already has another value"):
                    g.put(other)
            else:
                # It has none yet, so this is its first.
                g.put(other)
        with pytest.raises(InvalidValue, match=r"Account.country is immutable, and .* already has another value"):
            g.put(Account(id="a", owner="ann"))


def test_fields_of_nodes_and_children_are_immutable_and_those_of_edges_are_refused() -> None:
    class Owns(Edge[Account, Account]):
        share: Annotated[int, Immutable()] = 0

    class Booking(Child[Account], key=("number",)):
        number: int
        text: Annotated[str, Immutable()] = ""

    with pytest.raises(InvalidModel, match=r"^Owns.share is marked Immutable\(\), which is only for fields of nodes"):
        Graph(":memory:", [Account, Owns])
    with Graph(":memory:", [Account, Booking]) as g:
        g.put_many([Account(id="a"), Booking(parent="a", number=1, text="x")])
        with pytest.raises(InvalidValue, match=r"^Booking.text is immutable"):
            g.update(Booking, ("a", 1), text="y")


class Visited(Node):
    id: str
    latest: Annotated[list[int], Top("Visits", field="at", k=2)] = Field(default_factory=list)


class Visits(Edge[Page, Visited]):
    at: int = 0


def test_a_new_node_has_the_default_that_its_class_makes() -> None:
    with Graph(":memory:", [Page, Visited, Visits]) as g:
        g.add(Visited(id="a"))
        with pytest.raises(
            InvalidValue, match=r"Visited.latest is a managed field, and begins with \[\]; leave it out"
        ):
            g.add(Visited(id="b", latest=[1]))


def test_a_put_leaves_managed_fields_as_they_were_read() -> None:
    with Graph(":memory:", MODELS) as g:
        g.put_many([User(id="u"), Session(id="s"), Opened(source="u", target="s")])
        g.maintain(once=True)
        user = g.get(User, "u")
        assert user is not None
        assert user.logins == 1
        g.put(user)
        for wrong in (user.model_copy(update={"logins": 2}), User(id="u", logins=1), User(id="new", logins=1)):
            with pytest.raises(InvalidValue, match=r"User.logins is a managed field, and only adjoin sets it"):
                g.put(wrong)
        g.put(User(id="u"))
        assert g.get(User, "u") == user
