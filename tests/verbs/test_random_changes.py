"""Random upserts, updates and deletes agree with a plain model of what they mean, also where more items are written."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoin import AdjacencyList, Graph, Indexed, MaterializedGraph, Node, NotFound, Unique, Version, field
from adjoin.layouts.interface import Layout
from tests.shares import examples


class Plain(Node):
    id: str
    name: str = "none"
    count: int = 2
    words: list[str] = ["w"]
    marks: set[str] = set()
    numbers: dict[str, int] = {}
    revision: Annotated[int, Version()] = 1


class Involved(Node):
    """The same with an indexed field, a second one, and a unique one."""

    id: str
    name: Annotated[str, Indexed()] = "none"
    count: Annotated[int, Indexed()] = 2
    words: list[str] = ["w"]
    marks: set[str] = set()
    numbers: dict[str, int] = {}
    email: Annotated[str | None, Unique()] = None
    revision: Annotated[int, Version()] = 1


IDS, KEYS = st.sampled_from("ab"), st.sampled_from(["x", "y"])
CHANGES: dict[str, st.SearchStrategy[tuple[str, Any]]] = {
    "name": st.tuples(st.just("set"), st.sampled_from(["n", "m"])),
    "count": st.tuples(st.just("+"), st.integers(-3, 3)) | st.tuples(st.just("set"), st.integers(0, 9)),
    "words": st.tuples(st.sampled_from(["append", "discard"]), st.sampled_from(["v", "w"])),
    "marks": st.tuples(st.sampled_from(["add", "discard"]), st.sampled_from(["p", "q"])),
    "numbers": st.tuples(st.sampled_from(["inside +", "inside remove"]), KEYS),
}
CALLS = st.tuples(
    st.sampled_from(["upsert", "upsert", "update", "delete"]),
    IDS,
    st.dictionaries(st.sampled_from(sorted(CHANGES)), st.none(), min_size=1).flatmap(
        lambda names: st.fixed_dictionaries({name: CHANGES[name] for name in names})
    ),
)


def asked(name: str, change: tuple[str, Any]) -> Any:
    """The change as a program writes it."""
    operator, operand = change
    match operator:
        case "set":
            return field(name).set(operand)
        case "+":
            return field(name) + operand
        case "append":
            return field(name).append(operand)
        case "add":
            return field(name).add([operand])
        case "discard":
            return field(name).discard([operand])
        case "inside +":
            return field(f"{name}.{operand}") + 1
    return field(f"{name}.{operand}").remove()


def meant(stored: Any, change: tuple[str, Any]) -> Any:
    """What the change makes of a stored value."""
    operator, operand = change
    match operator:
        case "set":
            return operand
        case "+":
            return stored + operand
        case "append":
            return [*stored, operand]
        case "add":
            return stored | {operand}
        case "discard":
            return [each for each in stored if each != operand] if isinstance(stored, list) else stored - {operand}
        case "inside +":
            return {**stored, operand: stored.get(operand, 0) + 1}
    return {key: value for key, value in stored.items() if key != operand}


@pytest.mark.parametrize("layout", [AdjacencyList(), MaterializedGraph()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("model", [Plain, Involved])
@settings(max_examples=examples(20))
@given(calls=st.lists(CALLS, max_size=8), is_together=st.booleans())
def test_random_changes(model: Any, layout: Layout, calls: list[Any], is_together: bool) -> None:
    expected: dict[str, Any] = {}
    with Graph(":memory:", [model], layout) as g:
        for verb, id, changes in calls:
            if verb == "delete":
                assert g.delete(model, id) is (expected.pop(id, None) is not None)
                continue
            before = expected.get(id)
            given = [asked(name, change) for name, change in changes.items()]
            if before is None and verb == "update":
                with pytest.raises(NotFound):
                    g.update(model, id, *given)
                continue
            start = before or model(id=id)
            new = {name: meant(getattr(start, name), change) for name, change in changes.items()}
            new["revision"] = start.revision + (before is not None)
            expected[id] = start.model_copy(update=new)
            if is_together:
                with g.transaction() as t:
                    getattr(t, verb)(model, id, *given)
            else:
                assert getattr(g, verb)(model, id, *given) == expected[id]
        assert g.get_many(model, "ab") == [expected.get(id) for id in "ab"]
        if model is Involved:
            for name in ("n", "m", "none"):
                found = {node.id for node in g.find(model, field("name") == name)}
                assert found == {id for id, each in expected.items() if each.name == name}
            assert [node.count for node in g.find(model, order="count")] == sorted(
                each.count for each in expected.values()
            )
