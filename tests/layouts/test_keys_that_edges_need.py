"""What the keys of an edge have to hold: its ends, the fields of its identity, and for a symmetric edge both ways."""

from __future__ import annotations

from typing import Any

import pytest

from adjoin import AdjacencyList, Edge, InvalidItem, InvalidKey, InvalidModel, Keys, Node
from adjoin.layouts.bound import BoundLayout
from adjoin.schema import Schema


class User(Node):
    id: str


class Repo(Node, key=("owner", "name")):
    owner: str
    name: str


class Seen(Edge[User, Repo], key=("target.owner", "day")):
    """A user looks at one repository of each owner a day."""

    day: int


class Likes(Edge[User, Repo]):
    grade: str = ""


class Friend(Edge[User, User], symmetric=True):
    since: int = 0


def bound(model: Any, own: Keys, others: dict[type[Any], Keys] | None = None) -> BoundLayout:
    layout = AdjacencyList(reverse=None, keys={model: own, **(others or {})})
    return layout.bind(Schema([User, Repo, model]))


TOLD = {"owner": "{target.owner}", "name": "{target.name}"}


@pytest.mark.parametrize(
    ("model", "keys", "words"),
    [
        (Seen, Keys(sort="s#{day}#{target.owner}", attributes=TOLD), None),
        (
            Seen,
            Keys(sort="s#{target.owner}", attributes=TOLD),
            "Seen has the key field 'day', but its sort key s#{target.owner} does not contain it; add "
            "{day} to the template",
        ),
        (
            Seen,
            Keys(sort="s#{day}#{target.name}", attributes={"owner": "{target.owner}"}),
            "Seen has the key field 'target.owner', but its sort key s#{day}#{target.name} does not "
            "contain it; add {target.owner} to the template",
        ),
        (
            Seen,
            Keys(sort="s#{day}#{target.owner}"),
            "the sort key s#{day}#{target.owner} of Seen does not contain its target, and no attribute "
            'tells it; add it to the template, or give its Keys attributes={"…": "{target.owner}", "…": '
            '"{target.name}"}',
        ),
        (
            Likes,
            Keys(sort="l#{target.owner}", attributes=TOLD),
            "the sort key l#{target.owner} of Likes does not contain its target, so edges to different "
            "nodes would overwrite each other; add {target} to the template, or say that this is enough, "
            "with key=('target.owner',) of the class",
        ),
        (
            Likes,
            Keys("l#{target.owner}#{target.name}", "{grade}"),
            "the keys l#{target.owner}#{target.name} and {grade} of Likes do not contain its source, so "
            "edges to different nodes would overwrite each other; add {source} to the template",
        ),
        (
            Friend,
            Keys("f#{source.id}#{target.id}", "f"),
            "Friend is symmetric, so it is stored at both its ends, but its partition key "
            "f#{source.id}#{target.id} is not made of its source alone; change the template, or remove "
            "symmetric=",
        ),
        (
            Friend,
            Keys(sort="f#{since}"),
            "the sort key f#{since} of Friend does not contain its target, so edges to different nodes "
            "would overwrite each other; add {target} to the template",
        ),
        (Friend, Keys("f#{source.id}", "f#{target.id}"), None),
    ],
)
def test_what_the_keys_have_to_hold(model: Any, keys: Keys, words: str | None) -> None:
    if words is None:
        assert bound(model, keys)
        return
    with pytest.raises(InvalidModel) as refused:
        bound(model, keys)
    assert str(refused.value) == words


def test_an_end_in_part_is_part_of_the_identity() -> None:
    layout = bound(Seen, Keys(sort="s#{day}#{target.owner}", attributes=TOLD))
    kind = layout.schema.edge(Seen)
    edge = Seen(source="a", target=("o", "n"), day=3)
    (item,) = layout.items(edge)
    assert (item["SK"], item["name"]) == ({"S": "s#3#o"}, {"S": "n"})
    assert layout.read(item) == edge
    assert layout.edge_key(kind, "a", ("o", "other"), {"day": 3}) == layout.key_of(item)
    assert layout.loose(kind) == ["owner", "name"]
    # Only an item with this name is that edge.
    condition = layout.has_ends(kind, "a", ("o", "n"))
    assert condition is not None
    assert "'n'" in repr(condition)
    without = {name: value for name, value in item.items() if name != "name"}
    with pytest.raises(InvalidItem, match="is not a valid Seen: target: Field required"):
        layout.decode(kind, without)


def test_a_node_key_holds_what_each_of_its_keys_can_hold() -> None:
    """A separator of the partition key is no separator in the sort key, and may be part of a value there."""
    own = Keys("r|{owner}|x", "n#{name}")
    layout = bound(Likes, Keys(sort="n#{target.name}#{target.owner}"), {Repo: own})
    repo = layout.schema.node(Repo)
    assert layout.node_text(repo, ("o", "a|b")) == "r|o|x##n#a|b"
    assert layout.id_in(repo, "r|o|x##n#a|b") == ("o", "a|b")
    assert not layout.can_have(repo, ("a|b", "n"))
    assert not layout.can_have(repo, ("o", "a#b"))


def test_a_field_that_is_the_target_is_an_id_of_it() -> None:
    """The keys of the edge could hold more ids than those of the node."""

    class Skill(Node):
        id: str

    class Knows(Edge[User, Skill]):
        skill: str

    own: dict[type[Any], Keys] = {
        Skill: Keys("s|{id}|x", "skill"),
        Knows: Keys(sort="SKILL#{skill}", reverse_partition="s|{skill}|x", reverse_sort="{source.id}"),
    }
    layout = AdjacencyList(keys=own, shared_ids=True).bind(Schema([User, Skill, Knows]))
    kind = layout.schema.edge(Knows)
    assert layout.key_templates(kind).target_field == "skill"
    assert layout.edge_key(kind, "a", "py", {})["SK"] == {"S": "SKILL#py"}
    with pytest.raises(InvalidKey, match=r"^Skill\.id: 'a\|b' holds"):
        layout.edge_key(kind, "a", "a|b", {})
    with pytest.raises(
        InvalidKey, match=r"^Knows\.skill is 'c' but the target is 'd'; both are the same part of the key"
    ):
        layout.items(Knows(source="a", target="d", skill="c"))
