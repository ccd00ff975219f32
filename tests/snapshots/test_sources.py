"""Where snapshots come from, and where they go: files, scans, exports, folders; and what is refused."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import orjson
import pytest

import adjoin
from adjoin import (
    AdjacencyList,
    AsyncGraph,
    ChangesTrimmed,
    Child,
    Edge,
    Graph,
    Index,
    InvalidExport,
    InvalidItem,
    InvalidSnapshot,
    InvalidValue,
    Keys,
    NotInSnapshot,
    Snapshot,
    UnknownField,
    field,
)
from adjoin.batch.exports import write_export
from adjoin.layouts.interface import DELETING
from adjoin.requests import Delete, Put, Request, Scan, UpdateTable
from adjoin.stores.sqlite.store import SQLiteStore
from tests.faults import FaultyStore, Interrupted
from tests.snapshots.graphs import EDGES, FIELDS, MODELS, Bought, Friend, Knows, Note, Person, Thing, opened, told
from tests.snapshots.sourced import ITEMS, assert_same
from tests.waiting import until
from tests.walks.graphs import LAYOUTS

# --- sources -----------------------------------------------------------------------------------


def test_a_file_is_read_with_progress(graph: Graph) -> None:
    seen: list[tuple[str, int]] = []
    assert_same(graph, graph.snapshot(EDGES, FIELDS, progress=lambda name, number: seen.append((name, number))))
    assert ("reading items", len(ITEMS) + 2) in seen
    assert ("sorting Knows", 5) in seen


def test_a_scan_is_read(graph: Graph) -> None:
    assert_same(graph, graph.snapshot(EDGES, FIELDS, source="scan"))


def test_an_export_is_read_and_followed(graph: Graph, tmp_path: Path) -> None:
    with graph._store.dump(graph._layout.table) as pieces:  # type: ignore[attr-defined]
        write_export(pieces, tmp_path, graph._layout.table)
    graph.put(Knows(source="c", target="d", weight=9))
    graph.delete(Person, "b")
    snapshot = graph.snapshot(EDGES, FIELDS, source=tmp_path)
    assert snapshot.node(Person.ref("b")) is not None
    snapshot.follow(once=True)
    assert_same(graph, snapshot)
    snapshot._following.position, snapshot._following.since = None, time.time() - 100_000
    with pytest.raises(ChangesTrimmed, match="the export is older than a day, or the table had no stream"):
        snapshot.follow(once=True)
    write_export([], tmp_path / "other", "other")
    with pytest.raises(InvalidExport, match="is an export of the table 'other'"):
        graph.snapshot(EDGES, source=tmp_path / "other")


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_table_behind_the_server_is_scanned_and_followed(layout: str) -> None:
    with adjoin.serve() as server:
        location = f"dynamodb://walks?endpoint={server.endpoint}&region=us-east-1"
        with Graph(location, MODELS, LAYOUTS[layout]) as graph:
            graph.create_table()
            graph.put_many(ITEMS)
            snapshot = graph.snapshot(EDGES, FIELDS)
            assert_same(graph, snapshot)
            graph.put(Knows(source="c", target="d", weight=9))
            graph.disconnect(Friend, "a", "c")
            assert snapshot.follow(once=True) == 3
            assert_same(graph, snapshot)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_an_asynchronous_graph_has_snapshots(layout: str, tmp_path: Path) -> None:
    async def work() -> None:
        graph = AsyncGraph(f"{tmp_path / 'graph.db'}?durability=process", MODELS, LAYOUTS[layout])
        try:
            await graph.put_many(ITEMS)
            snapshot = await graph.snapshot(EDGES, FIELDS)
            walk = await graph.walk(Person.ref("a")).out(Knows).out(Knows).refs()
            assert list(snapshot.walk("a").out(Knows).out(Knows).refs()) == list(walk)
            await graph.put(Knows(source="a", target="c"))
            assert await snapshot.follow(once=True) == 1
            assert snapshot.degree("a", Knows) == 3
            snapshot.save(tmp_path / "saved")
            again = await graph.open_snapshot(tmp_path / "saved")
            following = asyncio.create_task(again.follow(every=0.01))
            await graph.put(Knows(source="a", target="a"))
            while again.degree("a", Knows) < 4:
                await asyncio.sleep(0.01)
            following.cancel()
        finally:
            await graph.close()

    asyncio.run(work())


def test_tenants_have_snapshots_of_their_own(graph: Graph) -> None:
    other = graph.for_tenant("other")
    other.put_many([Person(id="a"), Person(id="z"), Knows(source="a", target="z")])
    mine, theirs = graph.snapshot(EDGES, FIELDS), other.snapshot(EDGES, FIELDS)
    assert [ref.id for ref in theirs.walk("a").out(Knows).refs()] == ["z"]
    assert_same(graph, mine)
    other.put(Knows(source="z", target="a"))
    assert mine.follow(once=True) == theirs.follow(once=True) == 1
    assert theirs.k_hop_count("a", Knows, direction="both") == 1
    assert_same(graph, mine)


# --- following ---------------------------------------------------------------------------------


def test_a_thread_follows_while_a_block_runs(graph: Graph) -> None:
    snapshot = graph.snapshot([Knows])
    with snapshot.following(every=0.01):
        graph.put(Knows(source="b", target="a"))
        until(lambda: snapshot.degree("b", Knows) == 2)
    graph.drop_table()
    with pytest.raises(adjoin.TableNotFound), snapshot.following(every=0.01):
        pass
    graph.create_table()


def test_edges_of_an_interrupted_delete_are_hidden_as_in_the_live_graph() -> None:
    """Whatever request a delete stops at, the snapshot shows what the graph shows."""
    hub = [Person(id="hub"), *(Person(id=f"p{number}") for number in range(120))]
    edges = [Knows(source="hub", target=f"p{number}") for number in range(120)]
    seen = set()
    for stop in range(40):
        store = FaultyStore(SQLiteStore(":memory:"))
        graph = Graph(store, MODELS)
        graph.put_many([*hub, *edges])
        snapshot = graph.snapshot([Knows], source="scan")
        store.stop_at(stop, "after")
        try:
            graph.delete(Person, "hub")
            is_done = True
        except Interrupted:
            is_done = False
        store.recover()
        for each in (snapshot, graph.snapshot([Knows], source="scan")):
            each.follow(once=True)
            live = [ref.id for ref in graph.walk(Person.ref("hub")).out(Knows).refs()]
            assert [ref.id for ref in each.walk(Person.ref("hub")).out(Knows).refs()] == live
            assert (each.node(Person.ref("hub")) is None) == (graph.get(Person, "hub") is None)
        seen.add((len(live), any(DELETING in item for item in _items(graph))))
        graph.close()
        if is_done:
            break
    assert {(120, True), (0, True), (0, False)} <= seen


def test_a_delete_that_passes_its_switch_after_the_snapshot_hides_its_edges(tmp_path: Path) -> None:
    """The marks are older than the snapshot, and the switch is newer: no change that it follows names the edges."""
    store = FaultyStore(SQLiteStore(":memory:"))
    graph = Graph(store, MODELS)
    graph.put_many([Person(id="hub"), *(Knows(source="hub", target=f"p{number}") for number in range(120))])
    early = graph.snapshot([Knows], source="scan")
    snapshots: list[Snapshot] = []

    def live() -> tuple[int, int]:
        """How many edges are marked, and how many are visible."""
        return sum(DELETING in item for item in _items(graph)), graph.walk(Person.ref("hub")).out(Knows).count()

    def meanwhile(_number: int, _request: Request) -> str | None:
        """Takes the snapshots when all edges are marked, and stops the delete once it has passed its switch."""
        fault, store.fault = store.fault, lambda _number, _request: None
        seen = live()
        if seen == (120, 120) and not snapshots:
            early.follow(once=True)
            snapshots.extend((early, graph.snapshot([Knows], source="scan")))
            for number, each in enumerate(tuple(snapshots)):
                each.save(tmp_path / str(number))
                snapshots.append(graph.open_snapshot(tmp_path / str(number)))
        store.fault = fault
        return "before" if seen == (120, 0) else None

    store.fault = meanwhile
    with pytest.raises(Interrupted):
        graph.delete(Person, "hub")
    store.recover()
    assert [each.degree(Person.ref("hub"), Knows) for each in snapshots] == [120] * 4
    for each in snapshots:
        each.follow(once=True)
    assert [each.degree(Person.ref("hub"), Knows) for each in snapshots] == [0] * 4
    graph.close()


@pytest.mark.parametrize("marked", [[{}], [1], 5, [{"PK": "a", "SK": "b"}]])
def test_a_damaged_list_of_marked_edges_is_told(marked: object, tmp_path: Path) -> None:
    with Graph(":memory:", MODELS) as graph:
        graph.put(Knows(source="a", target="b"))
        graph.snapshot([Knows], source="scan").save(tmp_path / "saved")
        manifest = tmp_path / "saved" / "snapshot.json"
        manifest.write_bytes(orjson.dumps(orjson.loads(manifest.read_bytes()) | {"marked": marked}))
        with pytest.raises(InvalidSnapshot, match="is damaged"):
            graph.open_snapshot(tmp_path / "saved")


def _items(graph: Graph) -> list[Any]:
    return graph._run(_scan(graph._layout.table))


def _scan(table: str) -> Any:
    (page,) = yield (Scan(table),)
    return page.items


def test_a_table_without_a_stream_cannot_be_followed(tmp_path: Path) -> None:
    """Also if a stream is switched on later: nobody knows what happened until then."""
    with Graph(f"{tmp_path / 'graph.db'}?durability=process", MODELS) as graph:
        table = graph._layout.table
        graph._store.execute([UpdateTable(table, stream="off")])
        snapshot = graph.snapshot([Knows])
        graph.put(Knows(source="a", target="b"))
        graph._store.execute([UpdateTable(table, stream="NEW_AND_OLD_IMAGES")])
        with pytest.raises(ChangesTrimmed, match="or the table had no stream"):
            snapshot.follow(once=True)
        assert graph.snapshot([Knows]).follow(once=True) == 0


# --- memory ------------------------------------------------------------------------------------


def test_an_edge_takes_at_most_16_bytes_in_each_direction() -> None:
    people = [Person(id=f"p{number:03d}") for number in range(200)]
    edges = [Knows(source=f"p{a:03d}", target=f"p{b:03d}") for a in range(200) for b in range(200) if (a + b) % 4 == 0]
    with opened("adjacency list", [*people, *edges]) as graph:
        snapshot = graph.snapshot([Knows])
        relation = snapshot._relations[0]
        assert (relation.out.nbytes + relation.into.nbytes) / 2 / len(edges) < 9
        for edge in edges[:5000:2]:
            graph.disconnect(Knows, edge.source, edge.target)
        graph.put_many(Knows(source=edge.target, target=edge.source) for edge in edges[:2000])
        snapshot.follow(once=True)
        assert_rows(graph, snapshot)
        assert (relation.out.nbytes + relation.into.nbytes) / 2 / relation.count < 40
        relation.pack()
        snapshot._changed()
        assert_rows(graph, snapshot)
        assert (relation.out.nbytes + relation.into.nbytes) / 2 / relation.count < 16


def assert_rows(graph: Graph, snapshot: Snapshot) -> None:
    for id in ("p000", "p004", "p100", "p199"):
        assert list(snapshot.walk(id).out(Knows).refs()) == list(graph.walk(id).out(Knows).refs())
        assert list(snapshot.walk(id).into(Knows).refs()) == list(graph.walk(id).into(Knows).refs())


def test_rows_move_and_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adjoin.snapshots.relations._GAP", 8)
    with opened("adjacency list", [Person(id=f"p{number:03d}") for number in range(60)]) as graph:
        snapshot = graph.snapshot([Knows], ["Knows.weight"])
        for step in (7, 11, 13):
            pairs = [(a, a * step % 60) for a in range(60)]
            graph.put_many(Knows(source=f"p{a:03d}", target=f"p{b:03d}", weight=a) for a, b in pairs)
            snapshot.follow(once=True)
            for a in (0, 17, 59):
                for direction in ("out", "into"):
                    walks = [each.walk(f"p{a:03d}") for each in (graph, snapshot)]
                    live, held = (getattr(walk, direction)(Knows) for walk in walks)
                    assert [(edge.target, edge.weight) for edge in held.edges()] == [
                        (edge.target, edge.weight) for edge in live.edges()
                    ]


# --- arguments and fields ----------------------------------------------------------------------


def test_what_is_held_is_checked(graph: Graph) -> None:
    asked: list[tuple[Any, Any, type[Exception], str]] = [
        ([], [], InvalidValue, "needs at least one class"),
        (Knows, [], InvalidValue, "edges takes a list of classes"),
        ([Person], [], InvalidValue, "edges takes classes of edges or of children, got Person"),
        (["Knows"], [], InvalidValue, "got 'Knows'"),
        ([Knows], "weight", InvalidValue, "fields takes a list of names"),
        ([Knows], [7], InvalidValue, "a field is given by its name, got 7"),
        ([Knows], ["name"], InvalidValue, r"a snapshot holds numbers, and Person.name is not one"),
        ([Knows], ["wieght"], UnknownField, "wieght"),
        ([Knows], ["Thing.price"], UnknownField, "this snapshot has no .*Thing"),
    ]
    for edges, fields, error, message in asked:
        with pytest.raises(error, match=message):
            graph.snapshot(edges, fields)


def test_fields_that_are_not_held_are_refused_by_name(graph: Graph) -> None:
    snapshot = graph.snapshot([Knows, Bought], ["Person.age", "Knows.weight"])
    walk = snapshot.walk("a").out(Knows)
    refused: list[Any] = [
        lambda: walk.where(field("name") == "x"),
        lambda: walk.distinct().where(field("name") == "x"),
        lambda: walk.order_by("name"),
        lambda: walk.top("name"),
        lambda: walk.min("name"),
        lambda: snapshot.walk("a").repeat(Knows, max=2, until=field("name") == "x"),
        lambda: snapshot.walk("a").repeat(Knows, max=2, where=field("name") == "x"),
        lambda: snapshot.walk("a").out(Friend),
        lambda: snapshot.walk("a").out(Bought).sum("cost"),
        lambda: snapshot.shortest_path("a", "b", via=[Friend]),
        lambda: snapshot.shortest_path("a", "b", via=[Knows], where=field("name") == "x"),
        lambda: snapshot.shortest_path(Person.ref("a"), Thing.ref(8), via=[Bought], weight="cost"),
        lambda: snapshot.recommend("a", Friend),
        lambda: snapshot.common("a", "b", Friend),
        lambda: snapshot.subtree("a", Friend),
        lambda: walk.nodes()[0].name,
        lambda: snapshot.walk("a").out(Bought).edges()[0].cost,
    ]
    for ask in refused:
        with pytest.raises(NotInSnapshot, match="the snapshot does not hold"):
            ask()
    node, edge = walk.nodes()[0], walk.edges()[0]
    with pytest.raises(AttributeError, match="Person has no field 'nothing'"):
        node.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="Knows has no field 'nothing'"):
        edge.nothing  # noqa: B018
    assert (node.id, node.age, node.ref, edge.source, edge.target, edge.weight) == (
        "b",
        1,
        Person.ref("b"),
        "a",
        "b",
        0,
    )
    assert repr(node) == "<Person('b') of a snapshot>"
    assert repr(edge) == "<Knows from Person('a') to Person('b') of a snapshot>"
    assert {node, *walk.nodes()} == set(walk.nodes())
    assert {edge, *walk.edges()} == set(walk.edges())
    assert snapshot.degree(node, Knows) == snapshot.walk(node).out(Knows).count() == 1
    assert snapshot.walk([node, Person.ref("a")]).out(Knows).count() == 3
    assert repr(snapshot).startswith("<Snapshot of 6 nodes and 5 Knows, 2 Bought")


def test_subtrees_are_the_same() -> None:
    with opened("adjacency list", ITEMS) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        for model, quantity in ((Bought, "cost"), (Note, None)):
            live, held = (each.subtree(Person.ref("a"), model, quantity=quantity) for each in (graph, snapshot))
            assert (live.quantities, live.depths, live.missing) == (held.quantities, held.depths, held.missing)
            assert [told(node) for node in live.nodes] == [told(node) for node in held.nodes]
        assert graph.subtree("a", Bought).total("price") == snapshot.subtree("a", Bought).total("price")


class Shelf(adjoin.Node):
    id: int
    width: Annotated[int, "cm"] = 10**20


class Box(Child[Shelf], key=("place",)):
    place: int
    weight: float | None = None
    is_full: bool = False


class Moved(Edge[Shelf, Shelf], key=("at",)):
    at: int
    cost: Decimal


def test_numbers_that_do_not_fit_are_refused() -> None:
    with Graph(":memory:", [Shelf, Box, Moved]) as graph:
        graph.put(Shelf(id=1))
        with pytest.raises(InvalidValue, match=r"Shelf.width is 100000000000000000000 somewhere"):
            graph.snapshot([Box], ["width"])
        graph.put(Moved(source=1, target=1, at=1, cost=Decimal("1e-9")))
        snapshot = graph.snapshot([Moved], ["cost"])
        graph.put(Moved(source=1, target=1, at=2, cost=Decimal(10**15)))
        with pytest.raises(InvalidValue, match=r"Moved.cost is Decimal\('1000000000000000'\) somewhere"):
            snapshot.follow(once=True)


def test_all_kinds_of_numbers_are_exact() -> None:
    boxes = [Box(parent=1, place=9, weight=0.1), Box(parent=1, place=10, is_full=True), Box(parent=10, place=1)]
    moves = [Moved(source=1, target=2, at=at, cost=cost) for at, cost in enumerate([Decimal("0.10"), Decimal(10**12)])]
    with Graph(":memory:", [Shelf, Box, Moved]) as graph:
        graph.put_many([Shelf(id=1, width=1), Shelf(id=2, width=2), *boxes, *moves])
        snapshot = graph.snapshot([Box, Moved], ["weight", "is_full", "cost", "at"])
        assert [(box.place, box.weight, box.is_full) for box in snapshot.walk(Shelf.ref(1)).out(Box).nodes()] == [
            (box.place, box.weight, box.is_full) for box in graph.walk(Shelf.ref(1)).out(Box).nodes()
        ]
        walks = [each.walk(Shelf.ref(1)).out(Moved) for each in (graph, snapshot)]
        assert walks[0].sum("cost") == walks[1].sum("cost") == Decimal("1000000000000.1")
        assert snapshot.k_hop_sum(Shelf.ref(1), "cost", Moved) == Decimal("1000000000000.1")
        assert snapshot.k_hop_sum(Shelf.ref(1), "is_full", Box, on="nodes") == 1
        graph.put(Moved(source=2, target=1, at=5, cost=Decimal("0.001")))
        snapshot.follow(once=True)
        assert snapshot.k_hop_sum(Shelf.ref(1), "cost", Moved, 2) == Decimal("1000000000000.101")


class City(adjoin.Node):
    id: str


class Road(Edge[City, City]):
    km: int


def test_a_layout_whose_index_sorts_by_a_field_keeps_that_order() -> None:
    """Two roads may have the same length, so the keys of the table decide."""
    layout = AdjacencyList(
        table="roads",
        reverse=None,
        indexes=[Index("ByLength", "to", "length")],
        keys={Road: Keys(indexes={"ByLength": ("{target}", "{km:sortable}")})},
    )
    roads = [("b", "z", 5), ("a", "z", 5), ("c", "z", -1), ("d", "z", 30), ("a", "b", 1)]
    with Graph(":memory:", [City, Road], layout) as graph:
        graph.put_many([*(City(id=id) for id in "abcdz"), *(Road(source=a, target=b, km=km) for a, b, km in roads)])
        snapshot = graph.snapshot([Road], ["km"])
        for _ in range(2):
            walks = [each.walk("z").into(Road) for each in (graph, snapshot)]
            assert list(walks[0].refs()) == list(walks[1].refs())
            graph.put(Road(source="c", target="z", km=7))
            graph.put(Road(source="z", target="z", km=5))
            snapshot.follow(once=True)
        assert [ref.id for ref in snapshot.walk("z").into(Road).refs()] == ["a", "b", "z", "c", "d"]


class Stop(adjoin.Node):
    id: int


class Leads(Edge[Stop, Stop]): ...


def test_numbers_with_zeros_before_them_keep_their_order() -> None:
    """The first edge looks as if the key of the far node told the order, and the others do not."""
    layout = AdjacencyList(
        table="stops",
        node="NODE",
        keys={Stop: Keys(partition="{id}"), Leads: Keys(sort="{target.id:03d}")},
        reverse=None,
    )
    with Graph(":memory:", [Stop, Leads], layout) as graph:
        graph.put_many([Stop(id=1), Leads(source=1, target=123)])
        snapshot = graph.snapshot([Leads])
        graph.put_many([Leads(source=1, target=7), Leads(source=1, target=20)])
        snapshot.follow(once=True)
        for each in (snapshot, graph.snapshot([Leads])):
            assert [ref.id for ref in each.walk(Stop.ref(1)).out(Leads).refs()] == [7, 20, 123]


def test_an_index_key_that_another_program_wrote_keeps_its_order() -> None:
    """In a build, the sort keys are then held. A snapshot that does not hold them says so."""
    with opened("adjacency list", ITEMS) as graph:
        snapshot = graph.snapshot([Knows])
        (item,) = graph._layout.items(Knows(source="zz", target="b"))
        strange, elsewhere = {"GSI1SK": {"S": "KNOWS#PERSON#000"}}, {"GSI1SK": {"S": "OTHERS#zz"}}
        for key, ids in ((elsewhere, ["a"]), (strange, ["zz", "a"])):
            graph._store.execute([Put(graph._layout.table, item | key)])
            for each in (graph, graph.snapshot([Knows])):
                assert [ref.id for ref in each.walk("b").into(Knows).refs()] == ids
                assert [ref.id for ref in each.walk("zz").out(Knows).refs()] == ["b"]
        with pytest.raises(InvalidItem, match="sort key 'KNOWS#PERSON#000', and others of its class have 'KNOWS#'"):
            snapshot.follow(once=True)


def test_requests_are_made_only_to_build_and_follow(graph: Graph) -> None:
    snapshot = graph.snapshot(EDGES, FIELDS)
    with graph.meter() as meter:
        assert_answered = snapshot.walk("a").out(Knows).nodes()
        assert [node.id for node in assert_answered] == ["b", "d"]
        snapshot.shortest_path("a", "c", via=Knows)
        snapshot.pagerank(Knows)
    assert meter.requests == 0


def test_a_write_of_another_shape_is_no_change() -> None:
    """An item that no class explains changes nothing."""
    with opened("adjacency list", ITEMS) as graph:
        snapshot = graph.snapshot(EDGES, FIELDS)
        request: Request = Delete(graph._layout.table, {"PK": {"S": "nobody"}, "SK": {"S": "nothing"}})
        put = Put(graph._layout.table, {"PK": {"S": "nobody"}, "SK": {"S": "nothing"}})
        graph._store.execute([put])
        graph._store.execute([request])
        assert snapshot.follow(once=True) == 2
        assert_same(graph, snapshot)
