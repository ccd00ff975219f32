"""Random classes with random declared indexes: every read against a plain filter and sort over what was put.

A class of nodes, of edges and of children each have random fields, and random templates in random indexes: sharded,
local, over fields as they are, over several attributes, with every projection. What is in an index lacks no value.
"""

from __future__ import annotations

import datetime as dt
import operator
import random
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Annotated, Any

import pytest

from adjoin import (
    AdjacencyList,
    AdjoinError,
    Child,
    Edge,
    Graph,
    Index,
    InvalidKey,
    InvalidValue,
    Keys,
    Node,
    Projection,
    Stored,
    field,
)
from adjoin.requests import PageResponse, Scan
from tests.shares import FIRST, SEEDS


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Size(IntEnum):
    SMALL = 1
    LARGE = 12


def _moment(r: random.Random) -> dt.datetime:
    return dt.datetime(2024, 1, r.randint(1, 3), r.choice([0, 12]), tzinfo=dt.UTC)


VALUES: dict[type[Any], Callable[[random.Random], Any]] = {
    str: lambda r: r.choice(["a", "b", "cc", "d e", "é", "~", "A"]),
    int: lambda r: r.choice([-3, 0, 1, 7, 12, 100]),
    dt.date: lambda r: dt.date(2024, r.choice([1, 2]), r.randint(1, 3)),
    dt.datetime: _moment,
    Decimal: lambda r: r.choice([Decimal("1.5"), Decimal(-2), Decimal(10), Decimal("0.25")]),
    uuid.UUID: lambda r: uuid.UUID(int=r.randint(1, 4)),
    Colour: lambda r: r.choice(list(Colour)),
    Size: lambda r: r.choice(list(Size)),
}
TRANSFORMS: dict[type[Any], list[str]] = {
    str: ["", "", "lower"],
    int: ["", "04", "sortable"],
    dt.date: ["", "%Y-%m", "%d.%m.%Y"],
    dt.datetime: ["", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d", "epoch"],
    Decimal: ["", "sortable"],
    uuid.UUID: [""],
    Colour: ["", "upper"],
    Size: ["", "03"],
}
FORMATS: dict[type[Any], list[str]] = {
    dt.datetime: ["epoch", "%Y-%m-%dT%H:%M:%SZ"],
    int: ["04d"],
    Decimal: [".2f"],
    dt.date: ["%Y%m%d", "%d.%m.%Y"],
}
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Case:
    """Three classes of one seed, with a layout."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.types: dict[Any, dict[str, type[Any]]] = {}
        self.optional: dict[Any, set[str]] = {}
        self.node = self._made("Thing", Node, self.r.randint(1, 2))
        self.far = self._made("Other", Node, 1)
        self.edge = self._made("Link", Edge[self.node, self.far], self.r.choice([0, 1]))  # type: ignore[name-defined]
        self.child = self._made("Entry", Child[self.node], 1)  # type: ignore[name-defined]
        self.models = [self.node, self.far, self.edge, self.child]
        self.keys: dict[Any, dict[str, Any]] = {model: {} for model in self.models}
        self.indexes = [self._index(f"Index{number}", f"x{number}") for number in range(self.r.randint(1, 3))]

    def _made(self, name: str, base: Any, ids: int) -> Any:
        annotations: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        types: dict[str, type[Any]] = {}
        optional: set[str] = set()
        for number in range(ids):
            types[f"id{number}"] = annotations[f"id{number}"] = self.r.choice(list(VALUES))
        for number in range(self.r.randint(1, 3)):
            field_name, plain = f"f{number}", self.r.choice(list(VALUES))
            types[field_name] = plain
            hint: Any = plain
            if self.r.random() < 0.5:
                optional.add(field_name)
                hint, defaults[field_name] = plain | None, None
            is_formatted = plain in FORMATS and self.r.random() < 0.4
            annotations[field_name] = Annotated[hint, Stored(self.r.choice(FORMATS[plain]))] if is_formatted else hint
        namespace = {"__annotations__": annotations, "__module__": __name__, **defaults}
        made = type(base)(name, (base,), namespace, key=tuple(types)[:ids])
        self.types[made], self.optional[made] = types, optional
        return made

    def _template(self, model: Any) -> str:
        names = self.r.sample(list(self.types[model]), self.r.randint(1, min(2, len(self.types[model]))))
        parts = [f"{{{name}:{spec}}}" if (spec := self._spec(model, name)) else f"{{{name}}}" for name in names]
        if model is self.edge and self.r.random() < 0.5:
            parts.insert(0, "{target.id0}")
        return self.r.choice(["", "X#"]) + "#".join(parts)

    def _spec(self, model: Any, name: str) -> str:
        return self.r.choice(TRANSFORMS[self.types[model][name]])

    def _index(self, name: str, prefix: str) -> Index:
        r = self.r
        projection = r.choice([Projection(), Projection(), Projection("KEYS_ONLY"), Projection("INCLUDE", ("f0",))])
        match r.choice(["templates", "templates", "shards", "fields", "several", "local"]):
            case "fields":
                return Index(name, r.choice(["f0", "id0"]), "f1", projection=projection)
            case "several":
                return Index(name, ("f0", "f1"), r.choice(["f2", "id0"]), projection=projection)
            case "local":
                return Index(name, "PK", r.choice(["f0", "f1"]), local=True, projection=projection)
            case form:
                shards = r.choice([2, 3]) if form == "shards" else None
                for model in r.sample(self.models, r.randint(1, 4)):
                    partition = "S{shard}" if shards else r.choice(["ALL", self._template(model)])
                    self.keys[model].setdefault("indexes", {})[name] = (partition, self._template(model))
                return Index(name, f"{prefix}p", f"{prefix}s", shards=shards, projection=projection)

    def layout(self) -> AdjacencyList:
        ids = {model: [f"{{{name}}}" for name in self.types[model] if name.startswith("id")] for model in self.models}
        self.keys[self.node] |= {"partition": "T#" + "#".join(ids[self.node]), "sort": "A"}
        self.keys[self.far] |= {"partition": "O#" + "#".join(ids[self.far]), "sort": "A"}
        self.keys[self.edge] |= {"sort": "#".join(["L", "{target.id0}", *ids[self.edge]])}
        self.keys[self.child] |= {"sort": "#".join(["E", *ids[self.child]])}
        for model in self.models:
            told = [name for name in self.types[model] if f"{{{name}" in str(self.keys[model].get("indexes"))]
            if told and self.r.random() < 0.3:
                self.keys[model]["only_in_keys"] = tuple(name for name in told[:1] if name.startswith("f"))
        return AdjacencyList(
            reverse=None,
            indexes=self.indexes,
            keys={model: Keys(**keys) for model, keys in self.keys.items()},
            escape=self.r.random() < 0.5,
            type_attribute=self.r.choice([None, "type"]),
        )

    def value(self, model: Any, name: str) -> Any:
        return VALUES[self.types[model][name]](self.r)

    def entity(self, model: Any) -> Any:
        values = {
            name: None if name in self.optional[model] and self.r.random() < 0.4 else self.value(model, name)
            for name in self.types[model]
        }
        if model in (self.edge, self.child):
            ids = tuple(self.value(self.node, name) for name in self.types[self.node] if name.startswith("id"))
            values["source" if model is self.edge else "parent"] = ids if len(ids) > 1 else ids[0]
        if model is self.edge:
            values["target"] = self.value(self.far, "id0")
        return model(**values)

    def identity(self, entity: Any) -> tuple[Any, ...]:
        ends = [name for name in ("source", "target", "parent") if name in type(entity).model_fields]
        names = [*ends, *(name for name in self.types[type(entity)] if name.startswith("id"))]
        return (type(entity).__name__, *(getattr(entity, name) for name in names))

    def condition(self, model: Any) -> tuple[Any, Callable[[Any], bool]]:
        names = self.r.sample(list(self.types[model]), self.r.randint(1, min(2, len(self.types[model]))))
        tests: list[tuple[str, str, Any]] = []
        for name in names:
            plain = self.types[model][name]
            sign = "==" if plain in (uuid.UUID, Colour) else self.r.choice(["==", "==", *COMPARED])
            tests.append((name, sign, self.value(model, name)))
        parts = [COMPARED[sign](field(name), value) for name, sign, value in tests]

        def holds(entity: Any) -> bool:
            return all(
                (stored := getattr(entity, name)) is not None and COMPARED[sign](_order(stored), _order(value))
                for name, sign, value in tests
            )

        return (parts[0] if len(parts) == 1 else parts[0] & parts[1]), holds


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def shown(entities: Iterable[Any]) -> list[str]:
    """What is compared: Decimals and moments as they are equal."""
    return sorted(repr([(name, _plain(value)) for name, value in each]) for each in entities)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, Decimal):
        return str(value.normalize())
    return value.isoformat() if isinstance(value, dt.datetime) else repr(value)


@pytest.mark.simulation
def test_reads_are_filters_over_everything() -> None:
    opened = sum(_agrees(seed) for seed in range(FIRST * 2, (FIRST + SEEDS) * 2))
    assert opened > SEEDS // 4


def _agrees(seed: int) -> bool:
    case = Case(seed)
    try:
        g = Graph(":memory:", case.models, case.layout())
    except AdjoinError:
        # Random templates are often ambiguous.
        return False
    with g:
        world: dict[Any, Any] = {}
        for _ in range(25):
            entity = case.entity(case.r.choice(case.models))
            try:
                g.put(entity)
            except AdjoinError:
                continue
            world[case.identity(entity)] = entity
        _check_whole(case, g, list(world.values()), f"seed {seed}")
        for _ in range(20):
            model = case.r.choice(case.models)
            _check_find(case, g, model, [each for each in world.values() if type(each) is model], f"seed {seed}")
    return True


def _check_whole(case: Case, g: Graph, world: list[Any], about: str) -> None:
    for model in case.models:
        those = [each for each in world if type(each) is model]
        assert shown(g.scan(model)) == shown(those), about
        assert g.count(model) == len(those), about
    assert not list(g.scan().others), about
    links = [each for each in world if type(each) is case.edge]
    for source in {each.source for each in links}:
        assert shown(g.out(source, case.edge)) == shown(each for each in links if each.source == source), about
    entries = [each for each in world if type(each) is case.child]
    for parent in {each.parent for each in entries}:
        assert shown(g.children(parent, case.child)) == shown(each for each in entries if each.parent == parent), about
    before = _items(g)
    g.put_many(list(g.scan()))
    assert _items(g) == before, about


def _items(g: Graph) -> list[str]:
    (page,) = g._store.execute([Scan("adjoin")])
    assert isinstance(page, PageResponse)
    return sorted(repr(sorted(each.items())) for each in page.items)


def _check_find(case: Case, g: Graph, model: Any, world: list[Any], about: str) -> None:
    wanted, holds = case.condition(model)
    order = case.r.choice([None, None, *case.types[model]])
    try:
        query = g.find(model, wanted, order=order)
    except (InvalidKey, InvalidValue):
        # No index fits, or a format does not hold the value.
        return
    about = f"{about}: {model.__name__} {wanted} {order}, {g.explain(query)}"
    found, expected = list(query), [each for each in world if holds(each)]
    # A sparse index lacks those of which a part is None.
    whole = [each for each in expected if all(getattr(each, name) is not None for name in case.types[model])]
    assert {*shown(whole)} <= {*shown(found)} <= {*shown(expected)}, about
    assert len({*shown(found)}) == len(found) == query.count(), about
    pages, after = [], None
    while True:
        page = query.page(limit=2, after=after)
        pages += page.items
        after = page.next
        if after is None:
            break
    assert shown(pages) == shown(found), about
    if order is not None:
        values = [_order(getattr(each, order)) for each in found]
        assert values == sorted(values), about
