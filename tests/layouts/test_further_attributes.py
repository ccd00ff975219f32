"""Attributes that a class writes from templates for other programs, beside its keys and fields."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Child, Edge, Graph, Index, InvalidModel, Keys, Node, Projection, field
from adjoin.values import Item


class Repo(Node, key=("owner", "number")):
    owner: str
    number: int
    title: str = ""


class Issue(Child[Repo]):
    id: str


class User(Node):
    id: str
    mail: str | None = None


class Star(Edge[User, Repo]):
    weight: int = 1


def keys(**more: str) -> dict[type[Any], Keys]:
    return {
        Repo: Keys(attributes={"RepoOwner": "{owner}", "RepoNumber": "{number}", "Search": "{title:lower}", **more}),
        Issue: Keys(attributes={"Of": "{parent.number}", "Full": "{parent.owner}/{parent.number}/{id}"}),
        User: Keys(attributes={"UserName": "{id}", "Contact": "mailto:{mail}"}),
        Star: Keys(attributes={"By": "{source.id}", "Number": "{target.number}"}),
    }


def last(g: Graph) -> Item:
    item = [each.new_item for each in g.changes()][-1]
    assert item is not None
    return dict(item)


@pytest.mark.parametrize("escape", [True, False])
def test_they_are_written_and_kept(escape: bool) -> None:
    with Graph(":memory:", [Repo, Issue, User, Star], AdjacencyList(keys=keys(), escape=escape)) as g:
        g.put(Repo(owner="ann", number=7, title="C# and 50%"))
        further = {"RepoOwner": {"S": "ann"}, "RepoNumber": {"N": "7"}, "Search": {"S": "c# and 50%"}}
        assert last(g).items() >= further.items()
        g.update(Repo, ("ann", 7), title="Zig")
        assert last(g).items() >= (further | {"Search": {"S": "zig"}, "title": {"S": "Zig"}}).items()
        assert g.get(Repo, ("ann", 7)) == Repo(owner="ann", number=7, title="Zig")
        g.put(Issue(parent=("ann", 7), id="i"))
        assert last(g).items() >= {"Of": {"N": "7"}, "Full": {"S": "ann/7/i"}}.items()
        g.put(User(id="u"))
        assert last(g).keys() == {"PK", "SK", "UserName"}
        g.update(User, "u", mail="u@x.example")
        assert last(g)["Contact"] == {"S": "mailto:u@x.example"}
        g.connect(Star, "u", ("ann", 7))
        assert last(g).items() >= {"By": {"S": "u"}, "Number": {"N": "7"}}.items()
        assert [each.target for each in g.out("u", Star)] == [("ann", 7)]
        assert [finding for finding in g.verify().findings if finding.count] == []
        g.delete(Repo, ("ann", 7))
        assert list(g.scan()) == [User(id="u", mail="u@x.example")]


def test_ids_with_separators_are_written_as_they_are() -> None:
    layout = AdjacencyList(keys={User: Keys(attributes={"UserName": "{id}"})}, escape=True)
    with Graph(":memory:", [User], layout) as g:
        g.put(User(id="a#b c"))
        assert last(g) == {"PK": {"S": "USER#a%23b%20c"}, "SK": {"S": "#META"}, "UserName": {"S": "a#b c"}}
        assert g.get(User, "a#b c") == User(id="a#b c")


class Account(Node):
    id: str
    owner: str = Field("", alias="UserName")


def test_other_classes_may_have_a_field_of_the_name() -> None:
    with Graph(":memory:", [User, Account], AdjacencyList(keys={User: keys()[User]})) as g:
        g.put_many([User(id="u"), Account(id="a", owner="u")])
        assert g.get(Account, "a") == Account(id="a", owner="u")
        assert g.get(User, "u") == User(id="u")


def test_a_field_may_be_in_such_an_attribute_only() -> None:
    layout = AdjacencyList(keys={User: Keys(attributes={"Contact": "mailto:{mail}"}, only_in_keys=["mail"])})
    with Graph(":memory:", [User], layout) as g:
        g.put(User(id="u", mail="u#1@x.example"))
        assert last(g) == {"PK": {"S": "USER#u"}, "SK": {"S": "#META"}, "Contact": {"S": "mailto:u#1@x.example"}}
        assert g.get(User, "u") == User(id="u", mail="u#1@x.example")
        g.update(User, "u", mail="v@x.example")
        assert last(g)["Contact"] == {"S": "mailto:v@x.example"}
        g.update(User, "u", mail=None)
        assert g.get(User, "u") == User(id="u")


def test_an_index_without_them_is_read_in_one_request() -> None:
    layout = AdjacencyList(
        reverse=None, indexes=[Index("ByTitle", "title", projection=Projection("KEYS_ONLY"))], keys={Repo: keys()[Repo]}
    )
    with Graph(":memory:", [Repo], layout) as g:
        g.put(Repo(owner="ann", number=7, title="x"))
        with g.meter() as meter:
            assert list(g.find(Repo, field("title") == "x")) == [Repo(owner="ann", number=7, title="x")]
        assert meter.requests == 1


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"title": "{owner}"}, "Repo.title is stored as 'title', a name that the layout uses itself"),
        ({"PK": "{owner}"}, "Repo has two templates for the attribute 'PK'"),
        ({"Owner": "{ownr}"}, "no field 'ownr'; did you mean 'owner'"),
        ({"Owner": 7}, "takes names and templates as text"),
    ],
)
def test_what_is_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        Graph(":memory:", [Repo], AdjacencyList(keys={Repo: Keys(attributes=attributes)}))
