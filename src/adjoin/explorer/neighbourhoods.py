"""The Graph view: nodes, and page by page what is connected with them.

A lane is one class of edges or children in one direction. A node is expanded lane by lane, each with a page of its
own, so that a node with a million edges costs as much as one with twenty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from adjoin.dataclass import dataclass
from adjoin.entity_types import EntityType, NodeType
from adjoin.errors import AdjoinError, BudgetExceeded, InvalidValue, shown
from adjoin.exchange.texts import id_from
from adjoin.explorer.handles import Handles
from adjoin.explorer.opening import Explored
from adjoin.explorer.requested import Requested
from adjoin.explorer.sample import is_of_tenant, some_items
from adjoin.fields import field
from adjoin.model import Node, Ref
from adjoin.plans.steps.spending import Budget
from adjoin.values import Item

PAGE = 25
MOST = 200
"""The greatest number of results on one page."""
BUDGET = Budget(requests=300, seconds=20)
"""What a path or a recommendation may take, so that a click never reads a large part of a table."""

Direction = Literal["out", "into", "children", "parent"]


@dataclass(frozen=True)
class Edges:
    """One lane of a node: a class of edges or children, and in which direction."""

    kind: EntityType
    direction: Direction

    @property
    def told(self) -> dict[str, str]:
        return {"class": self.kind.name, "direction": self.direction}


def size_of(asked: Any, default: int = PAGE) -> int:
    """The number of results on a page that the page asks for."""
    if asked is None:
        return default
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= MOST:
        raise InvalidValue(f"a page has 1 to {MOST} results, got {shown(asked)}; ask for fewer, page by page")
    return asked


class Neighbourhoods:
    """What the Graph view asks."""

    def __init__(self, explored: Explored, handles: Handles) -> None:
        self._explored = explored
        self._graph = explored.graph
        self._layout = explored.layout
        self._handles = handles

    def start(self) -> dict[str, Any]:
        """Some nodes to begin with, of as many classes as a small sample has."""
        found: dict[str, Node] = {}
        with Requested() as requests:
            for item in self._graph._run(some_items(self._explored, MOST)):
                if self._layout.is_bookkeeping(item) or not is_of_tenant(self._layout, item):
                    continue
                entity = self._readable(item)
                if isinstance(entity, Node):
                    found.setdefault(self._handles.node(entity)["handle"], entity)
        nodes = [self._handles.node(each) for each in found.values()]
        return {"nodes": nodes, **requests.told()}

    def _readable(self, item: Any) -> Any:
        try:
            return self._layout.read(item)
        except AdjoinError:
            # The Table view shows an item that its class cannot read.
            return None

    def node(self, handle: str) -> dict[str, Any]:
        """One node with all its fields, and the lanes that lead on from it."""
        ref = self._handles.ref(handle)
        with Requested() as requests:
            node = self._graph.get(ref.model, ref.id)
        told = self._handles.missing(handle) if node is None else self._handles.node(node)
        kind = self._layout.schema.node(type(node) if node is not None else ref.model)
        lanes = [lane.told for lane in self._lanes(kind)]
        return {
            "node": told,
            "lanes": lanes,
            **self._place(self._layout.node_key(kind.whole, ref.id)),
            **requests.told(),
        }

    def edge(self, handle: str) -> dict[str, Any]:
        kind, source, target, key = self._handles.edge_parts(handle)
        with Requested() as requests:
            edge = self._graph.edge(kind.model, source, target, **key)
        told = None if edge is None else self._handles.edge(edge)
        item = self._layout.edge_key(kind, kind.source.id(source), kind.target.id(target), kind.key_values([*key], key))
        return {"edge": told, **self._place(item), **requests.told()}

    def _place(self, key: Item) -> dict[str, Any]:
        """Where an item is stored: its key as text, and its partition as the Table view asks for it."""
        return {"key": [*self._layout.key_texts(key)], "partition": [key[self._layout.definition.partition.name]]}

    def neighbours(
        self, handle: str, lane: dict[str, Any] | None = None, after: str | None = None, limit: int | None = None
    ) -> dict[str, Any]:
        """A page of each lane of a node, or the next page of one lane."""
        ref = self._handles.ref(handle)
        kind = self._layout.schema.node(ref.model)
        lanes = [*self._lanes(kind)]
        if lane is not None:
            wanted = (lane.get("class"), lane.get("direction"))
            lanes = [each for each in lanes if (each.kind.name, each.direction) == wanted]
            if not lanes:
                raise InvalidValue(f"a {kind.name} has no {shown(lane)}; choose one of its lanes")
        with Requested() as requests:
            pages = [self._page(each, ref, size_of(limit), after if lane else None) for each in lanes]
        # A node may be at the ends of edges of several lanes; the page draws it once.
        nodes = {node["handle"]: node for page in pages for node in page.pop("nodes")}
        edges = {edge["handle"]: edge for page in pages for edge in page.pop("edges")}
        return {"nodes": [*nodes.values()], "edges": [*edges.values()], "lanes": pages, **requests.told()}

    def _lanes(self, kind: NodeType) -> Iterator[Edges]:
        for edge in self._layout.schema.edges.values():
            if edge.source.covers(kind):
                yield Edges(edge, "out")
            # `out` of a symmetric class has all its edges at a node.
            if edge.target.covers(kind) and not edge.symmetric:
                yield Edges(edge, "into")
        for child in self._layout.schema.children(kind):
            yield Edges(child, "children")
        if kind.parent is not None:
            yield Edges(kind, "parent")

    def _page(self, lane: Edges, ref: Ref[Any], limit: int, after: str | None) -> dict[str, Any]:
        """A page of one lane. A lane that no index answers says so, and the others are there."""
        told: dict[str, Any] = {**lane.told, "next": None, "nodes": [], "edges": []}
        handles = self._handles
        try:
            match lane.direction:
                case "children":
                    page: Any = self._graph.children(ref, lane.kind.model).page(limit, after)
                    nodes = [handles.node(child) for child in page.items]
                    edges = [handles.parent(child) for child in page.items]
                case "parent":
                    return told | self._parent(lane.kind, ref)
                case _:
                    verb = self._graph.out if lane.direction == "out" else self._graph.into
                    page = verb(ref, lane.kind.model).page(limit, after)
                    edges = [handles.edge(edge) for edge in page.items]
                    near = handles.of_ref(ref)
                    nodes = self.nodes([_far(lane, edge, near) for edge in edges])
        except AdjoinError as error:
            return told | {"error": str(error)}
        return told | {"next": page.next, "nodes": nodes, "edges": edges}

    def read(self, handles: list[str]) -> dict[str, Any]:
        """Nodes by their handles, for edges that are to be drawn."""
        if not isinstance(handles, list) or len(handles) > MOST:
            raise InvalidValue(f"at most {MOST} nodes are read at a time; ask for fewer")
        with Requested() as requests:
            nodes = self.nodes(handles)
        return {"nodes": nodes, **requests.told()}

    def nodes(self, handles: Iterable[str]) -> list[dict[str, Any]]:
        """Nodes by their handles, with one batch of gets for each class. Those that do not exist are marked."""
        by_model: dict[type[Node], dict[str, Any]] = {}
        for handle in dict.fromkeys(handles):
            ref = self._handles.ref(handle)
            by_model.setdefault(ref.model, {})[handle] = ref.id
        found: list[dict[str, Any]] = []
        for model, ids in by_model.items():
            for handle, node in zip(ids, self._graph.get_many(model, ids.values()), strict=True):
                found.append(self._handles.missing(handle) if node is None else self._handles.node(node))
        return found

    def _parent(self, kind: EntityType, ref: Ref[Any]) -> dict[str, Any]:
        assert isinstance(kind, NodeType)
        assert kind.parent is not None
        id = kind.whole.parent_id(ref.id)
        parent = self._graph.get(kind.parent.model, id)
        handle = self._handles.of_id(kind.parent, id)
        child = self._graph.get(ref.model, ref.id)
        node = self._handles.missing(handle) if parent is None else self._handles.node(parent)
        return {"nodes": [node], "edges": [] if child is None else [self._handles.parent(child)]}

    # --- finding -------------------------------------------------------------------------------

    def find(self, text: str, model: str | None = None, by: str | None = None) -> dict[str, Any]:
        """Nodes by id, by a unique value or by an indexed field. Without a class, all classes are tried."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidValue("type an id or a value to find")
        kinds = [self._handles.node_kind(model)] if model else [*self._layout.schema.nodes.values()]
        found: dict[str, dict[str, Any]] = {}
        problems: list[str] = []
        with Requested() as requests:
            for kind in kinds:
                # A find of the head finds the nodes of the whole family.
                if kind.head is not None and not model:
                    continue
                for name in (by,) if by else ("", *kind.unique, *kind.indexed):
                    try:
                        for node in self._found(kind, name, text):
                            found.setdefault(self._handles.node(node)["handle"], self._handles.node(node))
                    except AdjoinError as error:
                        # A text that cannot be an id of this class, or no value of this field, finds nothing there.
                        problems.append(str(error))
        told = {"nodes": [*found.values()], **requests.told()}
        return told if found or not model or not problems else told | {"problem": problems[0]}

    def _found(self, kind: NodeType, name: str, text: str) -> list[Any]:
        if name in ("", "id"):
            parts = (text,) if kind.is_single else tuple(each.strip() for each in text.split("·"))
            node = self._graph.get(kind.model, id_from(kind, parts))
            return [] if node is None else [node]
        if name in kind.unique:
            unique: dict[str, Any] = {name: text}
            node = self._graph.get(kind.model, **unique)
            return [] if node is None else [node]
        is_text = "str" in str(kind.fields[name].annotation)
        asked = field(name).begins_with(text) if is_text else field(name) == kind.coerced(name, text)
        return self._graph.find(kind.model, asked).page(PAGE).items

    # --- paths and recommendations -------------------------------------------------------------

    def path(self, one: str, other: str, via: list[str] | None = None, depth: int = 6) -> dict[str, Any]:
        """A shortest path between two nodes, in any direction of the edges."""
        start, end = self._handles.ref(one), self._handles.ref(other)
        edges = self._layout.schema.edges
        chosen = [self._handles.edge_kind(name).model for name in via] if via else [*edges]
        with Requested() as requests:
            try:
                path = self._graph.shortest_path(
                    start, end, via=chosen, direction="both", max_depth=size_of(depth), budget=BUDGET
                )
            except BudgetExceeded as error:
                return {"path": None, "problem": str(error), **requests.told()}
        if path is None:
            return {"path": None, **requests.told()}
        nodes = [self._handles.node(node) for node in path.nodes]
        return {
            "path": {
                "nodes": nodes,
                "edges": [self._related(edge) for edge in path.edges],
            },
            **requests.told(),
        }

    def _related(self, edge: Any) -> dict[str, Any]:
        return self._handles.parent(edge) if isinstance(edge, Node) else self._handles.edge(edge)

    def recommend(self, handle: str, model: str, limit: int | None = None, direction: str = "out") -> dict[str, Any]:
        """Nodes that have most in common with a node, and through which nodes."""
        ref = self._handles.ref(handle)
        edge = self._handles.edge_kind(model)
        with Requested() as requests:
            found = self._graph.recommend(
                ref, edge.model, limit=size_of(limit, 10), direction=direction, reasons=5, budget=BUDGET
            )
        told = [
            {
                "node": self._handles.node(each.node),
                "score": str(each.score),
                "through": [self._handles.node(node) for node in each.through],
            }
            for each in found
        ]
        return {"recommendations": told, "partial": found.partial, **requests.told()}


def _far(lane: Edges, edge: dict[str, Any], near: str) -> str:
    """The handle of the node at the other end of an edge."""
    far: str = edge["target"] if lane.direction == "out" else edge["source"]
    return str(edge["source"]) if edge["symmetric"] and far == near else far
