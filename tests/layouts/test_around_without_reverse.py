"""What is around a node where the layout has no reverse index: by declared indexes, by the table, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, Index, InvalidModel, Keys, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema
from tests.layouts.described import all_of, where


class User(Node):
    id: str


class Post(Node):
    id: str


class Likes(Edge[User, Post]):
    grade: str | None = None


class Wrote(Edge[User, Post]):
    pass


class Follows(Edge[User, User]):
    pass


NO_REVERSE = "the layout has no reverse index"
BY_TARGET = Index("ByTarget", "TPK", "TSK")


def bound(*models: Any, indexes: tuple[Index, ...] = (), keys: dict[Any, Keys] | None = None) -> BoundLayout:
    layout = AdjacencyList(reverse=None, indexes=indexes, keys=keys or {})
    return layout.bind(Schema([User, Post, *models]))


def at(layout: BoundLayout, model: Any, id: str, *, must_find: bool = True) -> str:
    """The ranges in which edges arrive at a node."""
    return all_of(layout.ranges_at(layout.schema.node(model), id, must_find=must_find))


def arriving(layout: BoundLayout, model: Any, id: str) -> str:
    """The one range in which all edges arrive at a node."""
    return where(layout.collection(layout.schema.node(model), id, arriving=True))


def test_edges_that_are_found_nowhere() -> None:
    layout = bound(Likes, Wrote)
    for ask in (at, arriving):
        with pytest.raises(InvalidModel, match=f"^{NO_REVERSE}, so "):
            ask(layout, Post, "p")
    with pytest.raises(InvalidModel) as refused:
        at(layout, Post, "p")
    # A delete can do without them, and need not ask for those that nothing finds.
    assert str(refused.value).endswith(', or delete with edges="found", which leaves them')
    assert at(layout, Post, "p", must_find=False) == "nowhere"
    # No class of edges arrives at a user.
    assert at(layout, User, "u") == "nowhere"
    assert all_of(layout.ranges_around(layout.schema.node(User), "u", "USER#u")[0]) == "table: PK=USER#u"


def test_a_reverse_index_has_all_of_them_in_one_range() -> None:
    layout = AdjacencyList().bind(Schema([User, Post, Likes, Wrote]))
    assert at(layout, Post, "p") == at(layout, Post, "p", must_find=False) == "GSI1: GSI1PK=POST#p"
    assert at(layout, User, "u") == "nowhere"


def test_edges_that_one_declared_index_has_together() -> None:
    keys = {
        Likes: Keys(indexes={"ByTarget": ("{target}", "likes#{source.id}")}),
        Wrote: Keys(indexes={"ByTarget": ("{target}", "wrote#{source.id}")}),
    }
    layout = bound(Likes, Wrote, indexes=(BY_TARGET,), keys=keys)
    assert arriving(layout, Post, "p") == "ByTarget: TPK=POST#p"
    likes, wrote = "ByTarget: TPK=POST#p begins_with likes#", "ByTarget: TPK=POST#p begins_with wrote#"
    assert at(layout, Post, "p") == f"{likes} (exclusive, literal); {wrote} (exclusive, literal)"
    with pytest.raises(InvalidModel, match=r"\(no class of edges arrives there\)"):
        arriving(layout, User, "u")
    decode = layout.collection(layout.schema.node(Post), "p", arriving=True).access.decode
    for edge in (Likes(source="u", target="p"), Wrote(source="u", target="p")):
        (item,) = layout.items(edge)
        assert decode(item) == edge
    for entity in (Likes(source="u", target="other"), Wrote(source="p", target="u")):
        (item,) = layout.items(entity)
        assert decode(item) is None, "it arrives at another post"
    (user,) = layout.items(User(id="p"))
    assert decode(user) == User(id="p"), "who asked for everything there gets what is no edge too"


def test_edges_in_places_of_their_own_are_read_one_class_after_the_other() -> None:
    second = Index("Second", "XPK", shards=2)
    keys = {
        Likes: Keys(indexes={"ByTarget": ("{target}", "{source.id}")}),
        Wrote: Keys(indexes={"Second": "{target.id}#{shard}"}),
    }
    layout = bound(Likes, Wrote, indexes=(BY_TARGET, second), keys=keys)
    assert (
        at(layout, Post, "p") == "ByTarget: TPK=POST#p (literal); Second: XPK=p#0 (literal); Second: XPK=p#1 (literal)"
    )
    with pytest.raises(InvalidModel) as refused:
        arriving(layout, Post, "p")
    assert "(Likes in ByTarget at 'POST#p'; Wrote in Second at 'p#0')" in str(refused.value)
    only_shards = bound(Wrote, indexes=(second,), keys={Wrote: keys[Wrote]})
    with pytest.raises(InvalidModel, match=r"\(Wrote in Second at 'p#0'\)"):
        arriving(only_shards, Post, "p")


def test_some_that_are_found_and_some_that_are_not() -> None:
    keys = {Likes: Keys(indexes={"ByTarget": ("{target}", "{source.id}")})}
    layout = bound(Likes, Wrote, indexes=(BY_TARGET,), keys=keys)
    with pytest.raises(InvalidModel, match=r"^Wrote edges cannot be found from their target: "):
        at(layout, Post, "p")
    assert at(layout, Post, "p", must_find=False) == "ByTarget: TPK=POST#p (literal)"


@pytest.mark.parametrize("attribute", ["TSK", "grade"])
def test_an_index_that_may_lack_edges_is_not_enough(attribute: str) -> None:
    index = Index("ByTarget", "TPK", attribute)
    templates: Any = ("{target}", "{grade}") if attribute == "TSK" else "{target}"
    layout = bound(Likes, indexes=(index,), keys={Likes: Keys(indexes={"ByTarget": templates})})
    sparse = "ByTarget: TPK=POST#p (literal, sparse)"
    assert where(layout.into(layout.schema.edge(Likes), "p")) == sparse
    with pytest.raises(InvalidModel) as refused:
        at(layout, Post, "p")
    assert str(refused.value) == (
        "the index 'ByTarget' does not hold Likes edges whose key would have a part that is None, so not all that "
        'arrive at a Post can be found; give the layout reverse=Index(…), or delete with edges="found", which leaves '
        "them"
    )
    assert at(layout, Post, "p", must_find=False) == sparse


def test_an_index_that_holds_all_edges_comes_before_others() -> None:
    """Among those that hold all, the one with the fewest partitions."""
    sparse, many, few = Index("A", "APK", "grade"), Index("B", "BPK", shards=4), Index("C", "CPK", shards=2)
    one = Index("D", "DPK")
    templates = {"A": "{target}", "B": "{target.id}#{shard}", "C": "{target.id}#{shard}", "D": "d#{target.id}"}
    for indexes, name in (
        ((sparse, many, few, one), "D"),
        ((sparse, many, few), "C"),
        ((sparse, many), "B"),
        ((sparse,), "A"),
    ):
        for order in (indexes, indexes[::-1]):
            keys = {Likes: Keys(indexes={index.name: templates[index.name] for index in order})}
            layout = bound(Likes, indexes=order, keys=keys)
            assert layout.into(layout.schema.edge(Likes), "p").access.index == name


def test_edges_in_the_partition_of_their_target() -> None:
    """The table itself finds them from there, and not from where they come."""
    layout = bound(Follows, keys={Follows: Keys("to#{target.id}", "{source.id}")})
    kind = layout.schema.edge(Follows)
    assert where(layout.into(kind, "u")) == "table: PK=to#u (exclusive, literal)"
    assert at(layout, User, "u") == "table: PK=to#u (exclusive, literal)"
    with pytest.raises(InvalidModel, match=r"^Follows edges cannot be found from their source: "):
        layout.out(kind, "u")
    user = layout.schema.node(User)
    with pytest.raises(InvalidModel, match=r'cannot be found from their source: .*, or delete with edges="found"'):
        layout.ranges_beside(user, "u")
    assert layout.ranges_beside(user, "u", must_find=False) == []


def test_edges_apart_from_their_source_that_an_index_finds() -> None:
    keys = {Follows: Keys("to#{target.id}", "{source.id}", indexes={"ByTarget": ("{source}", "{target.id}")})}
    layout = bound(Follows, indexes=(BY_TARGET,), keys=keys)
    kind, user = layout.schema.edge(Follows), layout.schema.node(User)
    found = "ByTarget: TPK=USER#u (literal)"
    assert where(layout.out(kind, "u")) == all_of(layout.ranges_from(kind, "u")) == found
    assert all_of(layout.ranges_beside(user, "u")) == all_of(layout.ranges_beside(user, "u", must_find=False)) == found
    assert layout.is_apart(kind)
    assert not layout.tells_target(kind)


def test_an_index_that_may_lack_edges_which_leave_a_node_is_not_enough() -> None:
    index = Index("BySource", "SPK", "SSK")
    keys = {Likes: Keys("to#{target.id}", "{source.id}", indexes={"BySource": ("{source}", "{grade}")})}
    layout = bound(Likes, indexes=(index,), keys=keys)
    user = layout.schema.node(User)
    sparse = "BySource: SPK=USER#u (literal, sparse)"
    assert all_of(layout.ranges_beside(user, "u", must_find=False)) == sparse
    assert all_of(layout.ranges_beside(layout.schema.node(Post), "p")) == "nowhere"
    with pytest.raises(InvalidModel, match="so not all that leave a User can be found; give the layout reverse=Index"):
        layout.ranges_beside(user, "u")
    leaving, _ = layout.ranges_around(user, "u", "USER#u", must_find=False)
    assert all_of(leaving) == f"table: PK=USER#u; {sparse}"
