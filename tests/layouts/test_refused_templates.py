"""Templates that are refused, each beside one that looks alike and is right: placeholders, indexes, ids and types."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Child, Copy, Count, Edge, Index, Indexed, InvalidModel, Keys, Max, Node
from adjoin.schema import Schema


class User(Node):
    id: str
    city: str = ""
    size: int = 0


class Group(Node):
    id: str


class Likes(Edge[User, Group]):
    grade: int = 0


class Sender(Node):
    id: str
    best: Annotated[int | None, Max("Sent", field="size")] = None
    number: Annotated[int, Count("Sent")] = 0
    city: str = ""


class Sent(Edge[Sender, Group]):
    size: int = 0


class Neighbour(Edge[User, User], symmetric=True):
    city: Annotated[str, Copy("target.city"), Indexed()] = ""


class Post(Child[User]):
    id: str


class Slot(Node, key=("a", "b")):
    a: str
    b: str


class Note(Child[Slot]):
    id: str


class Links(Edge[Slot, Group]):
    pass


class Starred(Edge[User | Slot, Group]):
    pass


class Page(Node):
    id: str
    at: dt.datetime = dt.datetime(2026, 1, 1)
    code: list[str] = []
    real: float = 0.5


ONE = Index("I", "IPK", "ISK")


def layout(keys: dict[type[Any], Keys], **options: Any) -> AdjacencyList:
    return AdjacencyList(keys=keys, **options)


def indexed(model: type[Any], templates: Any) -> AdjacencyList:
    """A layout with these templates of a class in an index."""
    return AdjacencyList(keys={model: Keys(indexes={"I": templates})}, indexes=[ONE])


NO_TEXT: Any = {"a": 3}
CASES: list[tuple[AdjacencyList, tuple[Any, ...], str | None]] = [
    (
        indexed(Sender, ("x", "{best}")),
        (Sender, Group, Sent),
        "Sender.best is part of the key 'ISK', but it may be None, which no key can hold; mark it with Indexed()",
    ),
    (indexed(Sender, ("x", "{number:08}")), (Sender, Group, Sent), None),
    (indexed(Sender, ("x", "{number:08}#{id}")), (Sender, Group, Sent), None),
    (
        indexed(Sender, ("x", "{number:08}#{city}")),
        (Sender, Group, Sent),
        "the key 'ISK' of Sender is made of 'number', a managed field, and of 'city', which others change; give",
    ),
    (indexed(Sender, ("{city}", "{number:08}")), (Sender, Group, Sent), None),
    (
        AdjacencyList(),
        (User, Neighbour),
        "Neighbour.city is a copied field of a symmetric edge, whose two items have different values, and an",
    ),
    (
        layout({User: Keys(indexes={"Nope": "x"})}),
        (User,),
        "the keys of User: the layout has no index 'Nope'; it has 'GSI1'",
    ),
    (
        layout({User: Keys(indexes={"I": "x"})}, indexes=[Index("I", ("city", "size"))]),
        (User,),
        "the index 'I' has several attributes in its keys, which are fields of the classes, so it takes no",
    ),
    (
        indexed(User, ("a", "b", "c")),
        (User,),
        "the keys of User give 'I' 3 templates, but it has 2 key attributes; give one template for each",
    ),
    (indexed(User, ("a", 3)), (User,), "a key template of User in 'I' must be text, got 3"),
    (
        indexed(User, "a"),
        (User,),
        "the keys of User in 'I' have no template for 'ISK', and no field is stored there; give two templates, of",
    ),
    (indexed(User, ("a", "b")), (User,), None),
    (
        layout({User: Keys(indexes={"I": ("x", "y"), "J": ("z", "y")})}, indexes=[ONE, Index("J", "IPK", "JSK")]),
        (User,),
        "User has two templates for the key attribute 'IPK': 'x' and 'z'; an attribute has one value, so give one",
    ),
    (
        layout({User: Keys(indexes={"I": ("x", "y")}, attributes={"IPK": "z"})}, indexes=[ONE]),
        (User,),
        "User has two templates for the attribute 'IPK': 'x' and 'z'; remove it from attributes=",
    ),
    (layout({User: Keys(indexes={"I": ("x", "y")}, attributes={"IPK": "x"})}, indexes=[ONE]), (User,), None),
    (
        layout({User: Keys(attributes=NO_TEXT)}),
        (User,),
        "attributes of User takes names and templates as text, got 'a'",
    ),
    (AdjacencyList(indexes=[ONE, ONE]), (User,), "indexes= has two indexes called 'I'; give one of them another name"),
    (
        layout({User: Keys(reverse_sort="x")}, reverse=None),
        (User,),
        "Keys(reverse_sort='x') of User has no effect: no index has such a key; remove it",
    ),
    (layout({User: Keys(reverse_sort="x")}), (User,), None),
    (
        layout({User: Keys("u#{id}", "u", reverse_partition="z")}, reverse=Index("R", "SK", "PK")),
        (User,),
        "Keys(reverse_partition='z') of User has no effect: 'SK' has another template; remove it",
    ),
    (
        layout({User: Keys("{city}", "u")}),
        (User,),
        "the partition key {city} of User uses 'city', but a node is found by its id alone, and a put with",
    ),
    (layout({User: Keys("u", "u")}), (User,), "the partition key u of User does not contain its id; add {id}"),
    (
        layout({User: Keys("{id:upper}", "u")}),
        (User,),
        "the partition key {id} of User does not contain its id; add {id}, without a transform that loses its",
    ),
    (
        layout({Slot: Keys("{a}", "s")}),
        (Slot,),
        "the keys {a} and s of Slot do not tell 'b', which is part of its id; add {b} to one of them, without a",
    ),
    (
        layout({Slot: Keys("{a}", "{b:lower}")}),
        (Slot,),
        "the keys {a} and {b} of Slot do not tell 'b', which is part of its id; add {b} to one of them, without a",
    ),
    (layout({Slot: Keys("{a}", "{b}")}), (Slot,), None),
    (
        layout({Slot: Keys("s#{a}", "{b}"), Note: Keys(sort="x#{id}")}),
        (Slot, Note),
        "the keys s#{parent.a} and x#{id} of Note do not tell 'parent.b', which is part of its id; add {parent.b}",
    ),
    (layout({Slot: Keys("s#{a}", "{b}"), Note: Keys(sort="{parent.b}#x#{id}")}), (Slot, Note), None),
    (
        layout({Post: Keys("p#{id}", "{parent.id}")}),
        (User, Post),
        "the partition key p#{id} of Post is not the key USER#{id} of its parent User, and is not made of its id",
    ),
    (layout({Post: Keys("p#{parent.id}", "{id}")}), (User, Post), None),
    (layout({Post: Keys("p", "{parent.id}#{id}")}), (User, Post), None),
    (
        layout({Slot: Keys("s#{a}", "{b}"), Links: Keys(sort="l#{target.id}")}),
        (Slot, Group, Links),
        "nodes of Slot share a partition, so the sort key l#{target.id} of Links must begin with the rest of the",
    ),
    (layout({Slot: Keys("s#{a}", "{b}"), Links: Keys(sort="{source.b}#l#{target.id}")}), (Slot, Group, Links), None),
    (
        layout({Slot: Keys("s#{a}", "{b}")}),
        (User, Slot, Group, Starred),
        "edges leave User | Slot, but nodes of Slot share a partition, so the keys of an edge would not say which",
    ),
    (AdjacencyList(), (User, Slot, Group, Starred), None),
    (
        layout({Likes: Keys(sort="{label:upper}#{target}")}),
        (User, Group, Likes),
        "in the key template '{label:upper}#{target}' of Likes, {label} cannot be changed by 'upper': nodes would",
    ),
    (
        layout({User: Keys("{label:upper}#{id}")}),
        (User,),
        "in the key template '{label:upper}#{id}' of User, {label} cannot be changed by 'upper': nodes would not",
    ),
    (
        layout({User: Keys("{node}", "x")}),
        (User,),
        "in the key template '{node}' of User, {node} is the partition key itself; name the parts of the id, such",
    ),
    (
        layout({Starred: Keys(sort="{source.id}#{target}")}),
        (User, Slot, Group, Starred),
        "in the key template '{source.id}#{target}' of Starred, {source.id} is part of an id, but the source is",
    ),
    (
        layout({Likes: Keys(sort="{target.id:upper}")}),
        (User, Group, Likes),
        "in the key template '{target.id:upper}' of Likes, {target.id} cannot be changed by 'upper': nodes would",
    ),
    (
        layout({User: Keys("{nope}")}),
        (User,),
        "in the key template '{nope}': User has no field 'nope'; did you mean 'node'?",
    ),
    (
        layout({Likes: Keys(sort="{target.nope}")}),
        (User, Group, Likes),
        "in the key template '{target.nope}': Likes has no field 'target.nope'; did you mean 'target'?",
    ),
    (layout({User: Keys("{id")}), (User,), "the key template '{id' cannot be read: expected '}' before end of string"),
    (
        layout({User: Keys("{id:what}")}),
        (User,),
        "there is no transform 'what'; use upper, lower, sortable, a width such as 08, epoch, epoch_ms, or a date",
    ),
    (
        layout({User: Keys("u#{id}{city}")}),
        (User,),
        "in a key of User, nothing separates {id} from {city}; put a separator such as '#' between them",
    ),
    (layout({User: Keys("{id}#{id}")}), (User,), "a key of User names a field twice: {id}#{id}"),
    (
        layout({User: Keys(only_in_keys=["city"])}),
        (User,),
        "User.city would be stored nowhere: only_in_keys names it, but no key of the class holds its whole value;",
    ),
    (
        layout({User: Keys(only_in_keys=["nope"])}),
        (User,),
        "only_in_keys='nope': User has no field 'nope'; it has 'city', 'size'",
    ),
    (layout({User: Keys(indexes={"I": ("{city}", "x")}, only_in_keys=["city"])}, indexes=[ONE]), (User,), None),
    (
        layout({User: Keys(indexes={"I": ("{city:upper}", "x")}, only_in_keys=["city"])}, indexes=[ONE]),
        (User,),
        "User.city would be stored nowhere: only_in_keys names it, but no key of the class holds its whole value;",
    ),
    (indexed(Page, ("x", "{at:%m-%d}")), (Page,), None),
    (indexed(Page, ("x", "{code}")), (Page,), None),
    (
        indexed(Page, ("x", "{real}")),
        (Page,),
        "Page.real is a float, which cannot be part of a key; use text, a whole number, a Decimal, a date or a",
    ),
    (
        indexed(Page, ("x", "{real:04}")),
        (Page,),
        "Page.real is a float, which cannot be part of a key; use text, a whole number, a Decimal, a date or a",
    ),
    (indexed(Page, ("x", "{id:%Y}")), (Page,), "Page.id is not a date, so {id:%Y} has no meaning"),
    (indexed(Page, ("x", "{id:epoch}")), (Page,), "Page.id is not a datetime, so {id:epoch} has no meaning"),
    (
        indexed(User, ("x", "{city:04}")),
        (User,),
        "User.city is not a whole number, so {city:04} has no meaning; write {city}, or give the field the type",
    ),
    (
        AdjacencyList(partition_key="a", sort_key="a"),
        (User,),
        "the layout uses one attribute twice; give the partition key, the sort key and the type different names",
    ),
    (
        AdjacencyList(type_attribute="SK"),
        (User,),
        "the layout uses one attribute twice; give the partition key, the sort key and the type different names",
    ),
    (
        AdjacencyList(indexes=[Index("I", "nobody")]),
        (User,),
        "nothing is stored in 'nobody', a key attribute of the index 'I': no class has a template or a field for",
    ),
    (
        AdjacencyList(indexes=[Index("I", "code")]),
        (Page,),
        "Page.code cannot be the key attribute 'code' of the index 'I': a key is text, a number or bytes, and the",
    ),
    (AdjacencyList(indexes=[Index("I", "real")]), (Page,), None),
    (
        AdjacencyList(indexes=[Index("I", "size", types={"size": "S"})]),
        (User,),
        "types= of the index 'I' says that 'size' is text, and User.size is stored there as a number; remove it",
    ),
    (AdjacencyList(indexes=[Index("I", "grade"), Index("J", "size")]), (User, Group, Likes), None),
    (AdjacencyList(sort_key=None), (User,), None),
    (
        layout({User: Keys(sort="x")}, sort_key=None),
        (User,),
        "the sort key 'x' of User has no effect: the table has a partition key only (sort_key=None); remove it",
    ),
    (
        AdjacencyList(sort_key=None, reverse=None),
        (User, Group, Likes),
        "Likes is a class of edges, and the table has a partition key only (sort_key=None), so each edge has a",
    ),
    (
        layout({Likes: Keys("{source.id}|{target.id}", sort="x")}, sort_key=None, reverse=None),
        (User, Group, Likes),
        "the sort key 'x' of Likes has no effect: the table has a partition key only (sort_key=None); remove it",
    ),
    (
        AdjacencyList(indexed=Index("GSI3", "GSI3PK")),
        (Neighbour, User),
        "the index 'GSI3' is for indexed fields, whose order needs a sort key; add one",
    ),
]


@pytest.mark.parametrize(("given", "models", "words"), CASES)
def test_templates(given: AdjacencyList, models: tuple[Any, ...], words: str | None) -> None:
    """`words` is how the refusal begins; None for a layout that is right."""
    if words is None:
        assert given.bind(Schema(models))
        return
    with pytest.raises(InvalidModel) as refused:
        given.bind(Schema(models))
    assert str(refused.value).startswith(words)
