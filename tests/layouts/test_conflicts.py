"""Declarations whose keys would conflict, each beside one that looks alike and is right."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pytest
from pydantic import Field

from adjoin import AdjacencyList, Copy, Count, Edge, Expires, Index, Indexed, InvalidModel, Keys, Node, Unique
from adjoin.schema import Schema


class User(Node):
    id: str


class Group(Node):
    id: str


class Numbered(Node):
    id: int


class Family(Node, discriminator="what"):
    id: str


class Member(Family):
    pass


class OneTarget(Edge[Numbered, Numbered], one_target=True):
    pass


class TwoIndexed(Node):
    id: int
    name: Annotated[str, Indexed()] = ""
    city: Annotated[str, Indexed()] = ""


class Tagged(Node):
    id: int
    tags: Annotated[list[str], Indexed(elements=True)] = []


class OneIndexed(Node):
    id: int
    name: Annotated[str, Indexed()] = ""


class Claiming(Node):
    id: int
    name: Annotated[str | None, Unique()] = None


class Expiring(Node):
    id: str
    until: Annotated[dt.datetime | None, Expires()] = None


class NamedUntil(Node):
    id: str
    other: Annotated[str, Field(alias="until")] = ""


class NamedPK(Node):
    id: str
    pk: Annotated[str, Field(alias="PK")] = ""


class EdgeNamedSK(Edge[User, Group]):
    pk: Annotated[str, Field(alias="SK")] = ""


class NamedT(Node):
    id: str
    kind: Annotated[str, Field(alias="T")] = ""


class Plain(Node):
    id: str
    city: str = ""


class Likes(Edge[User, Group]):
    pass


class Hates(Edge[User, Group]):
    pass


class Ranked(Edge[User, Group], order="rank"):
    rank: int = 0


class EdgeTwoIndexed(Edge[User, Group]):
    a: Annotated[int, Indexed()] = 0
    b: Annotated[int, Indexed()] = 0


class Counting(Node):
    id: str
    n: Annotated[int, Count("Counted")] = 0


class Counted(Edge[Counting, Group], key=("at",)):
    at: int = 0


class Copying(Edge[Counting, Group], key=("at",)):
    at: int = 0
    n: Annotated[int, Copy("source.n")] = 0


def numbers(
    *models: Any, shards: int | None = None, keys: dict[Any, Keys] | None = None
) -> tuple[AdjacencyList, tuple[Any, ...]]:
    """A layout whose keys are numbers, with classes of nodes whose id is both keys."""
    own = {model: Keys("{id}", "{id}") for model in models if issubclass(model, Node)} | (keys or {})
    layout = AdjacencyList(
        partition_key="id", sort_key="at", types={"id": "N", "at": "N"}, reverse=None, keys=own, shards=shards
    )
    return layout, models


LIKES: tuple[Any, ...] = (User, Group, Likes)
BOTH: tuple[Any, ...] = (User, Group, Likes, Hates)
RANKED: tuple[Any, ...] = (User, Group, Ranked)
COUNTED: tuple[Any, ...] = (Counting, Group, Counted)


def one_key(**keys: Any) -> AdjacencyList:
    own = {model: keys[model.__name__] for model in BOTH if model.__name__ in keys}
    return AdjacencyList(sort_key=None, reverse=None, partition_key="P", keys=own)


CASES: list[tuple[AdjacencyList, tuple[Any, ...], str | None]] = [
    (
        AdjacencyList(),
        (Family, Member),
        "the discriminator 'what' of Family is neither one of its fields nor the type attribute of the layout,",
    ),
    (
        AdjacencyList(type_attribute="T"),
        (Family, Member),
        "the discriminator 'what' of Family is neither one of its fields nor the type attribute of the layout,",
    ),
    (AdjacencyList(type_attribute="what"), (Family, Member), None),
    (
        *numbers(Numbered, OneTarget, keys={OneTarget: Keys("{source.id}", "{target.id}")}),
        "OneTarget has one_target= or one_source=, and claims to its nodes are in items of adjoin's own, which",
    ),
    (
        *numbers(TwoIndexed),
        "TwoIndexed has two fields that are marked Indexed(), name and city, and index copies for the second are",
    ),
    (
        *numbers(TwoIndexed, shards=1),
        "TwoIndexed has two fields that are marked Indexed(), name and city, and index copies for the second are",
    ),
    (
        *numbers(Tagged),
        "Tagged.tags is marked Indexed(elements=True), and the entries of elements are in items of adjoin's own,",
    ),
    (
        *numbers(OneIndexed),
        "OneIndexed.name is marked Indexed(), and the map of its shards is in items of adjoin's own, which this",
    ),
    (*numbers(OneIndexed, shards=1), None),
    (
        *numbers(Claiming),
        "Claiming.name is marked Unique(), and claims to its values are in items of adjoin's own, which this",
    ),
    (
        AdjacencyList(),
        (Expiring, NamedUntil),
        "NamedUntil.other is stored as 'until', by which items of this table expire; give it another alias",
    ),
    (
        AdjacencyList(),
        (NamedPK,),
        "NamedPK.pk is stored as 'PK', a name that the layout uses itself; give the field another alias, or the",
    ),
    (
        AdjacencyList(),
        (User, Group, EdgeNamedSK),
        "EdgeNamedSK.pk is stored as 'SK', a name that the layout uses itself; give the field another alias, or",
    ),
    (
        AdjacencyList(keys={EdgeNamedSK: Keys(sort="x#{target.id}#{pk}", only_in_keys=["pk"])}),
        (User, Group, EdgeNamedSK),
        None,
    ),
    (
        AdjacencyList(type_attribute="T"),
        (NamedT,),
        "NamedT.kind is stored as 'T', a name that the layout uses itself; give the field another alias, or the",
    ),
    (AdjacencyList(), (NamedT,), None),
    (
        AdjacencyList(indexes=[Index("C", "city", "CS")], keys={Plain: Keys(indexes={"C": ("c#{id}", "x")})}),
        (Plain,),
        "Plain.city is stored as 'city', a key of the index 'C' that also has a template; leave the template out,",
    ),
    (AdjacencyList(indexes=[Index("C", "city", "CS")], keys={Plain: Keys(indexes={"C": (None, "x")})}), (Plain,), None),
    (
        AdjacencyList(keys={Plain: Keys(attributes={"city": "{id}"})}),
        (Plain,),
        "Plain.city is stored as 'city', a name that the layout uses itself; give the field another alias, or the",
    ),
    (
        AdjacencyList(keys={User: Keys("x#{id}", "x"), Group: Keys("x#{id}", "x")}),
        (User, Group),
        "User and Group can have the same partition key x#{id}, and the same sort key x; change a label or a",
    ),
    (AdjacencyList(keys={User: Keys("x#{id}", "x"), Group: Keys("x#{id}", "y")}), (User, Group), None),
    (
        AdjacencyList(keys={User: Keys("x#{id}", "x"), Group: Keys("x#{id}", "y")}),
        LIKES,
        "User and Group can have the same node key x#{id}, and both have edges, which could not be distinguished;",
    ),
    (AdjacencyList(keys={User: Keys("x#{id}", "x"), Group: Keys("x#{id}", "y")}, shared_ids=True), LIKES, None),
    (
        AdjacencyList(keys={User: Keys("x#{id}", "#DELETING")}),
        (User,),
        "the sort key #DELETING of User can be '#DELETING', which marks a delete in progress; change the template",
    ),
    (AdjacencyList(keys={User: Keys("x#{id}", "{id}")}), (User,), None),
    (
        AdjacencyList(keys={User: Keys("x#{id}", "u"), Likes: Keys(sort="u")}),
        LIKES,
        "the sort key u of Likes does not contain its target, so edges to different nodes would overwrite each",
    ),
    (
        AdjacencyList(keys={User: Keys("x#{id}", "u"), Likes: Keys(sort="{target.id}")}),
        LIKES,
        "the sort key {target.id} of Likes can be u, the sort key of User itself; change one of the templates",
    ),
    (
        AdjacencyList(
            keys={User: Keys("u#{id}", "u"), Group: Keys("g#{id}", "g"), Likes: Keys("g#{source.id}", "{target.id}")}
        ),
        LIKES,
        "the sort key {target.id} of Likes can be g, the sort key of a Group in the same partition; change one of",
    ),
    (
        AdjacencyList(keys={Likes: Keys(sort="l#{target.id}"), Hates: Keys(sort="l#{target.id}")}),
        BOTH,
        "Likes and Hates can have the same key l#{target.id} in the partition of a User; add {label} to the edge",
    ),
    (AdjacencyList(keys={Likes: Keys(sort="l#{target.id}"), Hates: Keys(sort="l#{target.id}#x")}), BOTH, None),
    (
        one_key(
            User=Keys("u#{id}"),
            Group=Keys("g#{id}"),
            Likes=Keys("u#{source.id}#{target.id}"),
            Hates=Keys("u#{source.id}#{target.id}"),
        ),
        BOTH,
        "Likes and Hates can have the same key u#{source.id}#{target.id}; add {label} to the edge template",
    ),
    (
        one_key(User=Keys("u#{id}"), Group=Keys("g#{id}"), Likes=Keys("u#{source.id}")),
        LIKES,
        "the partition key u#{source.id} of Likes does not contain its target, so edges to different nodes would",
    ),
    (
        one_key(User=Keys("u#{id}"), Group=Keys("g#{id}#{id}"), Likes=Keys("u#{source.id}#{target.id}")),
        LIKES,
        "a key of Group names a field twice: g#{id}#{id}",
    ),
    (
        one_key(User=Keys("u#{id}"), Group=Keys("{id}#x"), Likes=Keys("{source.id}#{target.id}")),
        LIKES,
        "User and Group can have the same partition key u#{id}; change a label or a template",
    ),
    (
        AdjacencyList(indexed=Index("GSI3", "GSI3PK", "GSI3SK", shards=3)),
        (OneIndexed,),
        "the index 'GSI3' is that of indexed fields, which does not use its shards=; give the layout shards=",
    ),
    (
        AdjacencyList(indexes=[Index("I", "city", shards=3)]),
        (Plain,),
        "the index 'I' has shards=, but no class has {shard} in a template of its partition key; add such a",
    ),
    (
        AdjacencyList(indexes=[Index("I", "city", shard_by="id")]),
        (Plain,),
        "the index 'I' has shard_by=, but no shards=; say how many there are, or remove shard_by=",
    ),
    (
        AdjacencyList(indexes=[Index("I", "city", types={"x": "N"})]),
        (Plain,),
        "the index 'I' has types= for 'x', which is not a key attribute of it; remove it",
    ),
    (AdjacencyList(indexes=[Index("I", "city", types={"city": "S"})]), (Plain,), None),
    (
        AdjacencyList(keys={Likes: Keys(reverse_partition="x#{target.id}")}),
        LIKES,
        "the reverse partition key x#{target.id} of Likes is not the key GROUP#{id} of its target Group, so its",
    ),
    (AdjacencyList(keys={Likes: Keys(reverse_partition="GROUP#{target.id}")}), LIKES, None),
    (
        AdjacencyList(ordered=Index("GSI2", "GSI1PK", "X")),
        RANKED,
        "the index 'GSI2' for order needs key attributes of its own",
    ),
    (
        AdjacencyList(keys={Ranked: Keys("r#{target.id}", "{rank:sortable}#{source.id}")}),
        RANKED,
        "Ranked is ordered by 'rank', but its partition key r#{target.id} does not keep the edges of a source",
    ),
    (
        AdjacencyList(
            keys={Ranked: Keys(sort="r#{target.id}")}, ordered=Index("GSI2", "GSI2PK", "GSI2SK", "x#{source.id}")
        ),
        RANKED,
        "the order partition key x#{source.id} of Ranked is not the key USER#{id} of its source User, so its",
    ),
    (
        AdjacencyList(
            keys={Ranked: Keys(sort="r#{target.id}")}, ordered=Index("GSI2", "GSI2PK", "GSI2SK", sort="x#{target.id}")
        ),
        RANKED,
        "Ranked is ordered by 'rank', but its key x#{target.id} does not begin with that field",
    ),
    (
        AdjacencyList(keys={Ranked: Keys(sort="r#{rank}#{target.id}")}),
        RANKED,
        "Ranked is ordered by the number 'rank', which does not sort as text in r#{rank}#{target.id}; write",
    ),
    (AdjacencyList(keys={Ranked: Keys(sort="r#{rank:04}#{target.id}")}), RANKED, None),
    (
        AdjacencyList(indexed=Index("GSI3", "GSI1PK", "X")),
        (OneIndexed,),
        "the index 'GSI3' for indexed fields needs key attributes of its own",
    ),
    (
        AdjacencyList(indexed=Index("GSI3", "GSI2PK", "X")),
        (OneIndexed, User, Group, Ranked),
        "the index 'GSI3' for indexed fields needs key attributes of its own",
    ),
    (
        AdjacencyList(keys={User: Keys("#{id}")}),
        (User,),
        "the partition key #{id} of User begins with '#', as adjoin's own records do; change the template",
    ),
    (
        AdjacencyList(keys={User: Keys("{id}#=")}),
        (User,),
        "the partition key {id}#= of User ends with '#=', as adjoin's own index copies do; change the template",
    ),
    (
        AdjacencyList(reverse=None, keys={EdgeTwoIndexed: Keys(sort="d", attributes={"t": "{target.id}"})}),
        (User, Group, EdgeTwoIndexed),
        "the sort key d of EdgeTwoIndexed does not contain its target, so edges to different nodes would",
    ),
    (
        AdjacencyList(keys={Counted: Keys("c#{at}", "{source.id}#{target.id}")}),
        COUNTED,
        "something is counted or copied at the source of Counted, but its partition key c#{at} is not made of its",
    ),
    (
        AdjacencyList(keys={Counted: Keys(sort="c#{at}", attributes={"t": "{target.id}"})}, reverse=None),
        COUNTED,
        "something is counted or copied over Counted, but its target is not part of its key, so a put can change",
    ),
    (AdjacencyList(partition_key="contributes"), COUNTED, None),
]

CASES += [
    (
        AdjacencyList(keys={Copying: Keys("c#{at}", "{source.id}#{target.id}")}),
        (*COUNTED, Copying),
        "something is counted or copied at the source of Copying, but its partition key c#{at} is not made of",
    ),
    (
        AdjacencyList(keys={Copying: Keys(sort="c#{at}", attributes={"t": "{target.id}"})}, reverse=None),
        (*COUNTED, Copying),
        "something is counted or copied over Copying, but its target is not part of its key, so a put can",
    ),
    (AdjacencyList(keys={Copying: Keys("COUNTING#{source.id}", "c#{at}#{target.id}")}), (*COUNTED, Copying), None),
]


@pytest.mark.parametrize(("layout", "models", "words"), CASES)
def test_conflicts(layout: AdjacencyList, models: tuple[Any, ...], words: str | None) -> None:
    """`words` is how the refusal begins; None for a layout that is right."""
    if words is None:
        assert layout.bind(Schema(models))
        return
    with pytest.raises(InvalidModel) as refused:
        layout.bind(Schema(models))
    assert str(refused.value).startswith(words)
