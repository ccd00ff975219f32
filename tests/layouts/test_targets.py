"""Edges whose sort key does not spell their target: a field does, or the key of an index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest

from adjoin import AdjacencyList, Child, Edge, Graph, Indexed, InvalidItem, InvalidKey, Keys, Node, field
from adjoin.requests import Get, ItemResponse, Put
from adjoin.schema import Schema


class Person(Node):
    id: str


class Skill(Node):
    id: str


class Has(Edge[Person, Skill]):
    skill: str
    level: int = 0


class Wants(Edge[Person, Skill]):
    skill: str
    level: int = 0


MODELS: list[Any] = [Person, Skill, Has, Wants]
LAYOUT = AdjacencyList(
    keys={
        # The field is the target: the reverse partition is the key of the skill with it.
        Has: Keys(sort="HAS#{skill}", reverse_partition="SKILL#{skill}", reverse_sort="HAS#{source.id}"),
        # In upper case it tells edges apart, but not which node is meant. The index tells that.
        Wants: Keys(sort="WANTS#{skill:upper}", reverse_partition="SKILL#{skill}", reverse_sort="WANTS#{source.id}"),
    }
)
KEYS = {
    "PK": {"S": "PERSON#ann"},
    "SK": {"S": "HAS#sql"},
    "GSI1PK": {"S": "SKILL#sql"},
    "GSI1SK": {"S": "HAS#ann"},
    "level": {"N": "3"},
}


def stored(g: Graph, sort: str) -> Any:
    (response,) = g._store.execute((Get("adjoin", {"PK": {"S": "PERSON#ann"}, "SK": {"S": sort}}),))
    assert isinstance(response, ItemResponse)
    return response.item


def test_a_field_that_is_the_target_lives_in_the_keys_alone() -> None:
    with Graph(":memory:", MODELS, LAYOUT) as g:
        edge = Has(source="ann", target="sql", skill="sql", level=3)
        g.put(edge)
        assert stored(g, "HAS#sql") == KEYS
        assert g.edge(Has, "ann", "sql") == edge
        assert list(g.out("ann", Has)) == list(g.into("sql", Has)) == [edge]
        assert [found for found, _ in g.into("sql", Has).nodes()] == []
        g.put(Skill(id="sql"))
        assert list(g.out("ann", Has).nodes()) == [(edge, Skill(id="sql"))]
        g.update(Has, "ann", "sql", level=4)
        assert [found.level for found in g.out("ann", Has)] == [4]
        g.disconnect(Has, "ann", "sql")
        assert list(g.out("ann", Has)) == []


def test_such_a_field_and_the_target_are_one() -> None:
    with Graph(":memory:", MODELS, LAYOUT) as g:
        with pytest.raises(InvalidKey, match=r"Has.skill is 'c' but the target is 'sql'; both are the same part"):
            g.put(Has(source="ann", target="sql", skill="c"))
        assert list(g.changes()) == []


def test_what_lives_in_the_key_cannot_be_filtered_by() -> None:
    with Graph(":memory:", MODELS, LAYOUT) as g:
        g.put(Has(source="ann", target="sql", skill="sql", level=3))
        with pytest.raises(InvalidKey, match=r"Has.skill is stored in the key only.*within\(skill=…"):
            list(g.out("ann", Has).where(field("skill") == "sql"))
        assert len(list(g.out("ann", Has).within(skill="sql").where(field("level") == 3))) == 1


class Knows(Edge[Person, Skill]):
    skill: str
    level: Annotated[int, Indexed()] = 0


KNOWS = Keys(sort="KNOWS#{skill}", reverse_partition="SKILL#{skill}", reverse_sort="KNOWS#{source.id}")
SQL = field("skill") == "sql"
LEFT_OUT = "leave it out of only_if, because the key says its value"
SAID: dict[str, tuple[Callable[[Graph], object], str]] = {
    "the edges of a node": (
        lambda g: g.out("ann", Knows).where(SQL),
        r"narrow the query with within\(skill=…\) instead",
    ),
    # The sort key of this index has another part.
    "the edges into a node": (lambda g: g.into("sql", Knows).where(SQL), "filter the results in Python"),
    "a scan": (lambda g: g.scan(Knows).where(SQL), "filter the results in Python"),
    "a search": (lambda g: g.find(Knows, (field("level") == 3) & SQL), "filter the results in Python"),
    "a filter of a search": (lambda g: g.find(Knows, field("level") == 3).where(SQL), "filter the results in Python"),
    "an update": (lambda g: g.update(Knows, "ann", "sql", only_if=SQL, level=4), LEFT_OUT),
    "a put": (lambda g: g.put(Knows(source="ann", target="sql", skill="sql"), only_if=SQL), LEFT_OUT),
    "a transaction": (lambda g: transacted(g, lambda t: t.update(Knows, "ann", "sql", only_if=SQL, level=4)), LEFT_OUT),
    "a put in a transaction": (
        lambda g: transacted(g, lambda t: t.put(Knows(source="ann", target="sql", skill="sql"), only_if=SQL)),
        LEFT_OUT,
    ),
}


def transacted(g: Graph, write: Callable[[Any], object]) -> None:
    with g.transaction() as transaction:
        write(transaction)


@pytest.mark.parametrize("name", SAID)
def test_the_remedy_is_one_that_the_call_has(name: str) -> None:
    call, remedy = SAID[name]
    with Graph(":memory:", [Person, Skill, Knows], AdjacencyList(keys={Knows: KNOWS})) as g:
        g.put(Knows(source="ann", target="sql", skill="sql", level=3))
        with pytest.raises(
            InvalidKey, match=f"^Knows.skill is stored in the key only, so DynamoDB cannot compare it; {remedy}$"
        ):
            call(g)


def test_a_target_that_only_an_index_tells() -> None:
    with Graph(":memory:", MODELS, LAYOUT) as g:
        edge = Wants(source="ann", target="Sql", skill="Sql", level=3)
        g.put(edge)
        assert stored(g, "WANTS#SQL")["GSI1PK"] == {"S": "SKILL#Sql"}
        assert g.edge(Wants, "ann", "Sql") == edge
        assert list(g.out("ann", Wants)) == list(g.into("Sql", Wants)) == [edge]
        assert g._layout.ends(g._layout.schema.edge(Wants), stored(g, "WANTS#SQL")) == ("PERSON#ann", "SKILL#Sql")


def test_an_item_that_tells_its_target_nowhere() -> None:
    with Graph(":memory:", MODELS, LAYOUT) as g:
        item = {"PK": {"S": "PERSON#ann"}, "SK": {"S": "WANTS#SQL"}, "level": {"N": "3"}}
        g._store.execute((Put("adjoin", item),))
        with pytest.raises(InvalidItem):
            list(g.out("ann", Wants))
        with pytest.raises(InvalidItem, match="does not name its target"):
            g._layout.ends(g._layout.schema.edge(Wants), item)


class Level(Child[Skill]):
    id: str


def test_a_key_that_tells_no_parent() -> None:
    layout = AdjacencyList().bind(Schema([Skill, Level]))
    kind = layout.schema.node(Level)
    (item,) = layout.items(Level(parent="sql", id="1"))
    assert layout.source_text(kind, item) == "SKILL#sql"
    for partition, sort in (("SKILL#sql", "#META"), ("PERSON#ann", "LEVEL#1"), ("SKILL#", "LEVEL#1")):
        with pytest.raises(InvalidItem, match=f"^the item '{partition}' '{sort}' does not name its parent$"):
            layout.source_text(kind, {"PK": {"S": partition}, "SK": {"S": sort}})


def test_the_shape_of_what_is_stored() -> None:
    schema = Schema(MODELS)
    for attribute in (None, "kind"):
        layout = AdjacencyList(keys=LAYOUT.keys, type_attribute=attribute).bind(schema)
        shape = layout.shape(schema.edge(Has))
        told = {} if attribute is None else {"kind": "HAS"}
        keys = {"PK": "PERSON#{source.id}", "SK": "HAS#{skill}", "GSI1PK": "SKILL#{skill}", "GSI1SK": "HAS#{source.id}"}
        assert (dict(shape.written), dict(shape.fields)) == (keys | told, {"level": "level"})


def test_the_id_that_a_key_spells() -> None:
    layout = LAYOUT.bind(Schema(MODELS))
    kind = layout.schema.node(Skill)
    assert layout.id_in(kind, "SKILL#sql") == "sql"
    for other in ("PERSON#ann", "SKILL#", "SQL"):
        with pytest.raises(InvalidKey, match="is not the key of a Skill"):
            layout.id_in(kind, other)
