"""A snapshot beside igraph, an embedded graph database, NetworkX and live walks, in one run.

    python -m benchmarks.snapshot [--nodes 1000000] [--edges 10000000] [--quick]

The graph is a generated social network: everybody knows others, a few people are known by very many. All contestants
answer the same questions about the same nodes, take turns, and their answers are compared. The large graph is read from
an export in DynamoDB's format. NetworkX and live walks get a graph of a tenth of the size, in a file, and the snapshot
of that graph stands beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gc
import multiprocessing
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, cast

import igraph
import networkx as nx
import numpy as np
from orjson import dumps

import adjoin
from adjoin import Edge, Graph, Node, Ref
from adjoin.batch.exports import write_export
from benchmarks.tables import table

GOALS = {"two hops, igraph": 20.0, "two hops, ladybug": 200.0, "pagerank": 1.2, "bytes": 16.0, "change": 20.0}
LATENCY = 0.002
"""Seconds that every answer of the DynamoDB endpoint is held back."""
ROUNDS = 5


class Person(Node):
    id: str


class Knows(Edge[Person, Person]):
    weight: int


@dataclass(frozen=True)
class Settings:
    nodes: int
    edges: int
    queries: int = 3000
    slow: int = 5
    """How many queries slow contestants answer."""
    paths: int = 20
    changes: int = 60_000


FULL = Settings(1_000_000, 10_000_000)
QUICK = Settings(2_000, 12_000, 50, 3, 5, 2_000)


@dataclass
class Network:
    """The edges of a generated graph as arrays: sources, targets and weights."""

    nodes: int
    sources: Any
    targets: Any
    weights: Any
    ids: list[str] = field(default_factory=list)

    @classmethod
    def generated(cls, nodes: int, edges: int) -> Network:
        random = np.random.default_rng(17)
        # A fifth more, because the same pair may be drawn twice.
        sources = random.integers(0, nodes, edges + edges // 5)
        # The chance to be known falls with the rank, so that a few are known by very many.
        ranks = (nodes * random.random(len(sources)) ** 2).astype(np.int64)
        targets = random.permutation(nodes)[ranks]
        pairs = np.unique((sources * nodes + targets)[sources != targets])
        pairs = np.sort(random.permutation(pairs)[:edges])
        weights = random.integers(1, 100, len(pairs))
        width = len(str(nodes - 1))
        return cls(nodes, pairs // nodes, pairs % nodes, weights, [f"p{number:0{width}d}" for number in range(nodes)])

    def entities(self) -> Iterator[Any]:
        ids = self.ids
        for id in ids:
            yield Person(id=id)
        for source, target, weight in self.triples():
            yield Knows(source=ids[source], target=ids[target], weight=weight)

    def triples(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.sources.tolist(), self.targets.tolist(), self.weights.tolist(), strict=True)

    def exported(self, graph: Graph, folder: Path) -> None:
        """Writes the items that the graph would store as an export, without storing them."""
        person, knows = (
            dumps(graph._layout.items(each)[0])
            for each in (Person(id="person"), Knows(source="source", target="target", weight=1234567))
        )
        head, *rest = re.split(b"(source|target|1234567)", knows)
        pieces = [piece.decode() for piece in (head, *rest)]
        ids = self.ids

        def lines() -> Iterator[bytes]:
            for id in ids:
                yield person.replace(b"person", id.encode())
            for source, target, weight in self.triples():
                told = {"source": ids[source], "target": ids[target], "1234567": str(weight)}
                yield "".join([told.get(piece, piece) for piece in pieces]).encode()

        write_export(batched(lines(), 10_000), folder, graph._layout.table)


def batched(lines: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    while piece := list(islice(lines, size)):
        yield piece


# --- contestants -------------------------------------------------------------------------------


@dataclass
class Contestant:
    """Answers the three questions about numbers of nodes. None means that it does not answer one."""

    name: str
    near: Callable[[int], int]
    """How many others are within two edges of a node."""
    total: Callable[[int], int] | None
    """The sum of the weights of the edges that leave a node and its neighbours."""
    path: Callable[[int, int], int | None] | None
    """How many edges the shortest path between two nodes has."""
    queries: int
    many: Callable[[Sequence[int]], list[int]] | None = None
    """The same as `near`, for many nodes in one call."""
    waits: bool = False
    """Whether it waits for another process, so that only elapsed time tells how long it takes."""


def of_snapshot(name: str, snapshot: Any, network: Network, queries: int) -> Contestant:
    refs = [Ref(Person, id) for id in network.ids]

    def path(a: int, b: int) -> int | None:
        found = snapshot.shortest_path(refs[a], refs[b], Knows)
        return None if found is None else len(found.edges)

    def many(nodes: Sequence[int]) -> list[int]:
        counts = snapshot.k_hop_counts(Knows, 2, of=[refs[x] for x in nodes])
        # The scores are of different nodes, in the order of their numbers, as ids are.
        return cast("list[int]", counts.values_array[np.unique(nodes, return_inverse=True)[1]].tolist())

    return Contestant(
        name,
        lambda x: snapshot.k_hop_count(refs[x], Knows, 2),
        lambda x: snapshot.k_hop_sum(refs[x], "weight", Knows, 2),
        path,
        queries,
        many,
    )


def _within(length: int | None) -> int | None:
    """The length of a path, if it has at most as many edges as the others look for."""
    return length if length is not None and length <= 6 else None


def of_igraph(graph: Any, queries: int) -> Contestant:
    weights = graph.es["weight"]

    def total(x: int) -> int:
        near = graph.neighborhood(x, order=1, mode="out")
        return sum(weights[edge] for node in near for edge in graph.incident(node, mode="out"))

    def path(a: int, b: int) -> int | None:
        edges = graph.get_shortest_path(a, b, mode="out", output="epath")
        return _within(len(edges) if edges or a == b else None)

    def many(nodes: Sequence[int]) -> list[int]:
        return [size - 1 for size in graph.neighborhood_size(nodes, order=2, mode="out")]

    def near(x: int) -> int:
        return int(graph.neighborhood_size(x, order=2, mode="out")) - 1

    return Contestant("igraph", near, total, path, queries, many)


def of_ladybug(network: Network, folder: Path, settings: Settings) -> Contestant | None:
    try:
        library = import_module("ladybug")
    except ModuleNotFoundError:
        print("ladybug is not installed; pip install 'adjoin[peers]' brings it\n", flush=True)
        return None
    with (folder / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([number] for number in range(network.nodes))
    with (folder / "knows.csv").open("w", newline="") as file:
        csv.writer(file).writerows(network.triples())
    connection = library.Connection(library.Database(str(folder / "ladybug")))
    connection.execute("CREATE NODE TABLE Person(id INT64, PRIMARY KEY(id))")
    connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, weight INT64)")
    connection.execute(f"COPY Person FROM '{folder / 'people.csv'}'")
    connection.execute(f"COPY Knows FROM '{folder / 'knows.csv'}'")

    def ask(text: str) -> Callable[..., Any]:
        def asked(**values: int) -> Any:
            result = connection.execute(text, values)
            return result.get_next()[0] if result.has_next() else None

        return asked

    near = ask("MATCH (a:Person)-[:Knows*1..2]->(b:Person) WHERE a.id = $x AND b.id <> $x RETURN count(DISTINCT b)")
    total = ask(
        "MATCH (a:Person)-[:Knows]->(b:Person) WHERE a.id = $x AND b.id <> $x WITH DISTINCT b "
        "MATCH (b)-[e:Knows]->(:Person) RETURN sum(e.weight)"
    )
    own = ask("MATCH (a:Person)-[e:Knows]->(:Person) WHERE a.id = $x RETURN sum(e.weight)")
    path = ask(
        "MATCH p = (a:Person)-[:Knows* SHORTEST 1..6]->(b:Person) WHERE a.id = $x AND b.id = $y "
        "RETURN length(p) LIMIT 1"
    )
    return Contestant(
        "ladybug",
        lambda x: int(near(x=x)),
        lambda x: int(total(x=x) or 0) + int(own(x=x) or 0),
        lambda a, b: path(x=a, y=b),
        settings.slow,
    )


def of_networkx(network: Network, settings: Settings) -> Contestant:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(network.nodes))
    graph.add_weighted_edges_from(network.triples())

    def total(x: int) -> int:
        near = {x, *graph.successors(x)}
        return sum(weight for node in near for *_, weight in graph.out_edges(node, data="weight"))

    def path(a: int, b: int) -> int | None:
        try:
            return _within(int(nx.shortest_path_length(graph, a, b)))
        except nx.NetworkXNoPath:
            return None

    def near(x: int) -> int:
        return len(nx.single_source_shortest_path_length(graph, x, cutoff=2)) - 1

    return Contestant("NetworkX", near, total, path, settings.queries)


def of_walks(name: str, graph: Any, network: Network, settings: Settings) -> Contestant:
    def near(x: int) -> int:
        walk = graph.walk(Person.ref(network.ids[x]), cap=None).repeat(Knows, max=2)
        found = {ref.id for ref in walk.distinct().refs()}
        return len(found - {network.ids[x]})

    def path(a: int, b: int) -> int | None:
        ends = Person.ref(network.ids[a]), Person.ref(network.ids[b])
        found = graph.shortest_path(*ends, via=Knows, cap=None)
        return None if found is None else len(found.edges)

    return Contestant(name, near, None, path, settings.slow, waits=True)


# --- the endpoint ------------------------------------------------------------------------------


@contextmanager
def endpoint(path: Path) -> Iterator[str]:
    """The file behind `adjoin serve`, in a process of its own, with every answer held back."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(str(path), theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(path: str, pipe: Connection) -> None:
    with adjoin.serve(path) as server:
        host, port = server.endpoint.removeprefix("http://").split(":")
        asyncio.run(_hold_back(host, int(port), pipe))


async def _hold_back(host: str, port: int, pipe: Connection) -> None:
    loop = asyncio.get_running_loop()

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
        while data := await reader.read(1 << 20):
            if delay:
                loop.call_later(delay, writer.write, data)
            else:
                writer.write(data)
        loop.call_later(delay, writer.close)

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(passed(reader, far_writer, 0), passed(far_reader, writer, LATENCY))

    proxy = await asyncio.start_server(accepted, "127.0.0.1", 0)
    pipe.send(proxy.sockets[0].getsockname()[1])
    async with proxy:
        await proxy.serve_forever()


# --- running -----------------------------------------------------------------------------------


@dataclass
class Times:
    """Microseconds per query of each round. The fastest round counts: others may use the machine."""

    near: list[float] = field(default_factory=list)
    many: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    path: list[float] = field(default_factory=list)

    def told(self) -> list[str]:
        return [f"{min(each):,.1f}" if each else "–" for each in (self.near, self.many, self.total, self.path)]


def timed(ask: Callable[[], list[Any]], waits: bool) -> tuple[float, list[Any]]:
    """Microseconds per query, and the answers.

    It is processor time, because others may use the machine; or elapsed time if that is less, because a program may use
    several processors at a time.
    """
    gc.collect()
    begin, spent = perf_counter(), process_time()
    answers = ask()
    elapsed, spent = perf_counter() - begin, process_time() - spent
    return (elapsed if waits else min(elapsed, spent)) * 1e6 / len(answers), answers


def asked_of(
    contestant: Contestant, nodes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> dict[str, Callable[[], list[Any]]]:
    """The questions that a contestant answers, each about all nodes, or pairs of them."""
    near, total, path, many = contestant.near, contestant.total, contestant.path, contestant.many
    asked: dict[str, Callable[[], list[Any]]] = {"near": lambda: [near(x) for x in nodes]}
    if many is not None:
        asked["many"] = lambda: many(nodes)
    if total is not None:
        asked["total"] = lambda: [total(x) for x in nodes]
    if path is not None:
        asked["path"] = lambda: [path(a, b) for a, b in pairs]
    return asked


def compare(contestants: Sequence[Contestant], network: Network, settings: Settings) -> dict[str, Times]:
    """All contestants answer the same questions, in turns; raises if answers differ."""
    random = np.random.default_rng(5)
    nodes = [int(each) for each in random.integers(0, network.nodes, settings.queries)]
    pairs = [(int(a), int(b)) for a, b in random.integers(0, network.nodes, (settings.paths, 2))]
    times = {each.name: Times() for each in contestants}
    answers: dict[str, list[Any]] = {}
    for contestant in contestants:
        # What is compiled or opened on the first call is not part of the time.
        for ask in asked_of(contestant, nodes[:1], []).values():
            ask()
    for _ in range(ROUNDS):
        for contestant in contestants:
            some = nodes[: contestant.queries]
            for what, ask in asked_of(contestant, some, pairs[: contestant.queries]).items():
                each, found = timed(ask, contestant.waits)
                getattr(times[contestant.name], what).append(each)
                known = answers.setdefault("near" if what == "many" else what, found)
                least = min(len(known), len(found))
                assert known[:least] == found[:least], (contestant.name, what, known[:least], found[:least])
    return times


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    begin = perf_counter()
    result = work()
    return perf_counter() - begin, result


def igraph_of(network: Network) -> Any:
    graph = igraph.Graph(network.nodes, np.column_stack([network.sources, network.targets]), directed=True)
    graph.es["weight"] = network.weights.tolist()
    return graph


def change_times(graph: Graph, snapshot: Any, network: Network, count: int) -> float:
    """Processor microseconds to apply a change, reading the stream apart: new edges, new values, and edges that go."""
    random = np.random.default_rng(3)
    drawn = random.integers(0, network.nodes, (count // 3, 2))
    known = set(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    pairs = {(int(a), int(b)) for a, b in drawn if a != b and (int(a), int(b)) not in known}
    ends = [(network.ids[a], network.ids[b]) for a, b in pairs]
    graph.put_many(Knows(source=a, target=b, weight=1) for a, b in ends)
    graph.put_many(Knows(source=a, target=b, weight=2) for a, b in ends)
    for a, b in ends:
        graph.disconnect(Knows, a, b)
    following = snapshot._following
    spent, applied = 0.0, 0
    while changes := graph._run(following.page()):
        parsed = [(change.old, change.new) for change in changes]
        begin = process_time()
        for old, new in parsed:
            following.apply_one(old, new)
        spent += process_time() - begin
        applied += len(changes)
        following.position = following._next
    snapshot._changed()
    return spent * 1e6 / applied


def run(settings: Settings, folder: Path) -> None:
    took, network = seconds(lambda: Network.generated(settings.nodes, settings.edges))
    edges = len(network.sources)
    print(f"{settings.nodes:,} nodes and {edges:,} edges, generated in {took:,.0f} s\n", flush=True)
    with Graph(":memory:", [Person, Knows]) as graph:
        network.exported(graph, folder / "export")
        rows = []
        took, snapshot = seconds(lambda: graph.snapshot([Knows], ["weight"], source=folder / "export"))
        sides = sum(side.nbytes for side in (snapshot._relations[0].out, snapshot._relations[0].into))
        rows.append(["build it from an export, with a field", f"{took:,.0f} s"])
        each = f"{sides / 2 / edges:.1f} (goal {GOALS['bytes']:g})"
        rows.append(["bytes per edge and direction, without fields", each])
        each = f"{snapshot._nodes.nbytes / settings.nodes:.1f}"
        rows.append(["bytes per node: its key, its class, and what finds it", each])
        each = f"{change_times(graph, snapshot, network, settings.changes):.1f} µs (goal {GOALS['change']:g})"
        rows.append(["apply a followed change, processor time", each])
        took, _ = seconds(lambda: snapshot.save(folder / "saved"))
        rows.append(["save it", f"{took:,.1f} s"])
        took, snapshot = seconds(lambda: graph.open_snapshot(folder / "saved"))
        rows.append(["open it", f"{took * 1e3:,.0f} ms"])
        took, other = seconds(lambda: igraph_of(network))
        rows.append(["the same edges into igraph", f"{took:,.0f} s"])
        took, ladybug = seconds(lambda: of_ladybug(network, folder, settings))
        if ladybug is not None:
            rows.append(["the same edges into ladybug", f"{took:,.0f} s"])
        print(table(["a snapshot", ""], rows), flush=True)
        contestants = [
            of_snapshot("snapshot", snapshot, network, settings.queries),
            of_igraph(other, settings.queries),
            *([] if ladybug is None else [ladybug]),
        ]
        print(compared(compare(contestants, network, settings), "snapshot"), flush=True)
        print(ranked(snapshot, other), flush=True)
    smaller(settings, folder)


def compared(times: dict[str, Times], own: str) -> str:
    rows = [[name, *each.told()] for name, each in times.items()]
    for name, each in times.items():
        if name == own:
            continue
        goal = GOALS.get(f"two hops, {name}")
        ratios = [
            f"{min(theirs) / min(ours):,.1f}" if theirs and ours else "–"
            for ours, theirs in (
                (times[own].near, each.near),
                (times[own].many, each.many),
                (times[own].total, each.total),
                (times[own].path, each.path),
            )
        ]
        rows.append([f"{name} / {own}" + (f", goal {goal:g} for two hops" if goal else ""), *ratios])
    head = [
        "µs per query",
        "different nodes within two hops",
        "the same, all in one call",
        "sum of an edge field, two hops",
        "shortest path",
    ]
    return table(head, rows)


def ranked(snapshot: Any, other: Any) -> str:
    """PageRank by both, in turns. It compares the ranks."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        took, ranks = seconds(lambda: snapshot.pagerank(Knows))
        ours.append(took)
        took, values = seconds(lambda: other.pagerank())
        theirs.append(took)
    assert np.abs(ranks.values_array - np.array(values)).max() < 1e-8
    ratio = min(ours) / min(theirs)
    head = ["PageRank", "s"]
    rows = [["snapshot", f"{min(ours):,.2f}"], ["igraph", f"{min(theirs):,.2f}"]]
    return table(head, [*rows, [f"snapshot / igraph, goal {GOALS['pagerank']:g}", f"{ratio:.2f}"]])


def smaller(settings: Settings, folder: Path) -> None:
    """NetworkX and live walks on a tenth of the graph, beside the snapshot of it."""
    network = Network.generated(max(settings.nodes // 10, 100), max(settings.edges // 10, 500))
    path = folder / "smaller.db"
    with Graph(f"{path}?durability=process", [Person, Knows]) as graph:
        graph.put_many(network.entities())
        snapshot = graph.snapshot([Knows], ["weight"])
        with endpoint(path) as address:
            far = f"dynamodb://{graph._layout.table}?endpoint={address}&region=us-east-1"
            with Graph(far, [Person, Knows]) as distant:
                contestants = [
                    of_snapshot("snapshot", snapshot, network, settings.queries),
                    of_networkx(network, settings),
                    of_walks("walk on the file", graph, network, settings),
                    of_walks("walk through DynamoDB's protocol, 2 ms", distant, network, settings),
                ]
                times = compare(contestants, network, settings)
    print(f"{network.nodes:,} nodes and {len(network.sources):,} edges:\n\n{compared(times, 'snapshot')}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--edges", type=int)
    parser.add_argument("--quick", action="store_true", help="a small graph")
    options = parser.parse_args(arguments)
    chosen = QUICK if options.quick else FULL
    nodes, edges = options.nodes or chosen.nodes, options.edges or chosen.edges
    settings = Settings(nodes, edges, chosen.queries, chosen.slow, chosen.paths, chosen.changes)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        # igraph warns about nodes without a path between them, which is an answer here.
        warnings.filterwarnings("ignore", message="Couldn't reach some vertices")
        run(settings, Path(folder))


if __name__ == "__main__":
    main()
