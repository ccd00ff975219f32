"""`shard_by=`: which values choose the shard of an index key, for nodes, edges and children."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import (
    AdjacencyList,
    Child,
    Copy,
    Edge,
    Graph,
    Index,
    Indexed,
    InvalidModel,
    Keys,
    MaterializedGraph,
    Node,
    field,
)
from adjoin.values import decode
from tests.growing import scanned

SHARDS = 8


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str
    region: str = "eu"


class User(Node):
    id: str
    region: str = "eu"


class Star(Edge[Repo, User]):
    day: int = 0


class Watch(Edge[User, Repo]):
    day: int = 0
    where: Annotated[str, Copy("source.region")] = ""


class Issue(Child[Repo], key=("number",)):
    number: int
    day: int = 0


def graph(model: type[Any], by: Any) -> Graph:
    index = Index("ByTime", "shard", "day", shards=SHARDS, shard_by=by)
    keys: dict[type[Any], Keys] = {model: Keys(indexes={"ByTime": "{shard}"})}
    return Graph(":memory:", [Repo, User, model], AdjacencyList(reverse=None, indexes=[index], keys=keys, escape=True))


def shards(g: Graph, by: Any) -> dict[Any, set[str]]:
    """The shards of what has the same value."""
    found: dict[Any, set[str]] = {}
    for item in scanned(g):
        if "shard" in item:
            entity = g._layout.read(item)
            found.setdefault(by(entity), set()).add(decode(item["shard"]))
    return found


REPOS = [(owner, name) for owner in ("ann", "ben", "cid", "dan") for name in ("a", "b", "c")]
STARS = [Star(source=repo, target=user, day=at) for repo in REPOS for at, user in enumerate(("u1", "u2", "u3"))]
ISSUES = [Issue(parent=repo, number=number, day=number) for repo in REPOS for number in (1, 2, 3)]
WATCHES = [Watch(source=user, target=repo, day=at) for at, repo in enumerate(REPOS) for user in ("u1", "u2", "u3")]


@pytest.mark.parametrize(
    ("by", "entities", "value"),
    [
        ("source", STARS, lambda each: each.source),
        ("source.owner", STARS, lambda each: each.source[0]),
        (("source.owner", "day"), STARS, lambda each: (each.source[0], each.day)),
        ("target", STARS, lambda each: each.target),
        ("target.id", STARS, lambda each: each.target),
        ("parent", ISSUES, lambda each: each.parent),
        ("parent.name", ISSUES, lambda each: each.parent[1]),
        ("target", WATCHES, lambda each: each.target),
    ],
)
def test_an_end_or_a_part_of_its_id_chooses(by: Any, entities: list[Any], value: Any) -> None:
    with graph(type(entities[0]), by) as g:
        g.put_many([*(Repo(owner=owner, name=name) for owner, name in REPOS), *(User(id=f"u{at}") for at in (1, 2, 3))])
        g.put_many(entities)
        before = shards(g, value)
        assert all(len(each) == 1 for each in before.values())
        assert len(set.union(*before.values())) > 1
        found = list(g.find(type(entities[0]), order="day"))
        assert [each.day for each in found] == sorted(each.day for each in entities)
        for each in entities:
            ids = (each.source, each.target) if isinstance(each, Edge) else ((*each.parent, each.number),)
            g.update(type(each), *ids, day=each.day + (0 if "day" in by else 9))
        assert shards(g, value) == before
        assert g.find(type(entities[0]), order="day").count() == len(entities)


@pytest.mark.parametrize("by", ["where", "region", "source.region"])
def test_a_field_of_the_source_chooses_by_its_copy(by: str) -> None:
    with graph(Watch, by) as g:
        g.put_many(User(id=f"u{at}", region=f"r{at}") for at in (1, 2, 3))
        g.put_many(Repo(owner=owner, name=name) for owner, name in REPOS)
        g.put_many(WATCHES)
        found = shards(g, lambda each: each.where)
        assert found.keys() == {"r1", "r2", "r3"}
        assert all(len(each) == 1 for each in found.values())


class Likes(Edge[User, Repo | User]):
    day: int = 0


@pytest.mark.parametrize(
    ("model", "by", "message"),
    [
        (Star, "source.region", r'or copy it from the source with Copy\("source\.region"\)'),
        (Star, "region", r'or copy it from the source with Copy\("source\.region"\)'),
        (Issue, "parent.id", "Issue has no field 'parent.id'"),
        (Likes, "target", "the target of Likes is .*, whose ids differ; leave shard_by= out"),
    ],
)
def test_what_is_refused(model: type[Any], by: str, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        graph(model, by)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (Index("ByRegion", "region", shards=4), "has shards=, but no class has {shard} in a template"),
        (Index("ByRegion", "region", shard_by="id"), "has shard_by=, but no shards="),
        (Index("ByRegion", "region", types={"other": "N"}), "types= for 'other', which is not a key attribute"),
    ],
)
def test_options_that_nothing_uses_are_refused(index: Index, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        Graph(":memory:", [User], AdjacencyList(reverse=None, indexes=[index]))


def test_shards_of_the_index_of_indexed_fields_are_those_of_the_layout() -> None:
    class Tagged(Node):
        id: str
        tag: Annotated[str, Indexed()]

    with pytest.raises(InvalidModel, match="is that of indexed fields, which does not use its shards="):
        Graph(":memory:", [Tagged], AdjacencyList(indexed=Index("GSI3", "GSI3PK", "GSI3SK", shards=4)))


def test_a_graph_of_values_alone_is_published_without_shards() -> None:
    class Day(Node, label="DATE"):
        id: str
        day: Annotated[str, Field(alias="Data")]

    with Graph(":memory:", [Day], MaterializedGraph.as_published(4)) as g:
        g.put(Day(id="2", day="1980-12-19"))
        assert [each.id for each in g.index("GSI1").partition("0").begins_with("1980")] == ["2"]
        assert [each.id for each in g.find(Day, field("day") == "1980-12-19")] == ["2"]
