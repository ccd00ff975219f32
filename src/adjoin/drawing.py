"""The calls that draw: what they check, and which edges they read.

`Graph` and `AsyncGraph` inherit from `Draws` and `AsyncDraws`. What is drawn, and how, is decided in `adjoin.drawings`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from adjoin.errors import InvalidValue, UnknownField, shown
from adjoin.late import later
from adjoin.model import Child, Edge, Node, Ref
from adjoin.requests import Plan
from adjoin.verbs import Verbs

if TYPE_CHECKING:
    from adjoin import collecting, drawings, queries, walks
    from adjoin.collecting import CollectionQuery
    from adjoin.drawings import Drawing, Gathering
    from adjoin.plans import walk_results
    from adjoin.plans.steps import spending
    from adjoin.queries import Page
else:
    collecting = later("adjoin.collecting")
    drawings = later("adjoin.drawings")
    queries = later("adjoin.queries")
    spending = later("adjoin.plans.steps.spending")
    walk_results = later("adjoin.plans.walk_results")
    walks = later("adjoin.walks")

T = TypeVar("T")


class _ToDraw(Verbs):
    """What both graphs share."""

    def _gathering(
        self, x: Any, direction: str, label: str | None, edge_label: str | None, layers: bool, most: int
    ) -> Gathering:
        if direction not in ("out", "into", "both"):
            raise InvalidValue(f'direction must be "out", "into" or "both", got {shown(direction)}')
        if queries.whole_number("most", most) > drawings.MOST:
            raise InvalidValue(f"most must be at most {drawings.MOST}, got {shown(most)}; draw fewer nodes")
        if label is not None and not any(label in model.model_fields for model in self._schema.nodes):
            raise UnknownField(f"no class of nodes has a field {shown(label)}; pass one that labels nodes, or None")
        kinds = [*self._schema.edges, *(model for model in self._schema.nodes if issubclass(model, Child))]
        if edge_label is not None and not any(edge_label in model.model_fields for model in kinds):
            raise UnknownField(
                f"no class of edges has a field {shown(edge_label)}; pass one that labels edges, or None"
            )
        if isinstance(x, str | bytes | dict) or not isinstance(
            x, Iterable | AsyncIterable | Node | Edge | Ref | walk_results.WalkPath
        ):
            raise InvalidValue(drawings.not_drawn(x))
        return drawings.Gathering(self._schema, label, edge_label, most, layers)

    def _drawn(self, gathering: Gathering, direction: str) -> Plan[Drawing]:
        """Reads the edges of the nodes that stand by themselves, all in one round, and draws everything."""
        ways = ("out", "into") if direction == "both" else (direction,)
        pages: dict[int, Page[Any]] = {}

        def read(place: int, start: Node | Ref[Any], way: str) -> Plan[None]:
            around = self._collection(start, way, None)
            query: CollectionQuery[Any] = collecting.CollectionQuery(self._context, around, _node=start)
            # The first is the node itself.
            pages[place] = yield from query._page_plan(gathering.most + 1, None)

        asked = [(start, way) for start in gathering.starts for way in ways]
        plans = [read(place, *each) for place, each in enumerate(asked)]
        yield from spending.side_by_side(plans, spending.Spending(None, self._clock))
        for place, page in sorted(pages.items()):
            gathering.is_capped |= page.next is not None
            for found in page:
                # Items of no class are no part of a graph.
                if isinstance(found, Node | Edge):
                    gathering.add_at(asked[place][0], found)
        return gathering.drawing()


def _listed(x: Any) -> Any:
    """What is drawn one by one. Of a walk, it is its paths."""
    if isinstance(x, walks.Walk | walks.AsyncWalk):
        return x.paths()
    return [x] if isinstance(x, Node | Edge | Ref | walk_results.WalkPath) else x


class Draws(_ToDraw):
    """The call of `Graph`."""

    @abstractmethod
    def _run(self, plan: Plan[T]) -> T: ...

    def draw(
        self,
        x: Any,
        *,
        direction: str = "out",
        label: str | None = None,
        edge_label: str | None = None,
        layers: bool = False,
        most: int = 50,
    ) -> Drawing:
        """Draws a small graph, which a notebook shows: `g.draw(ann)`, or `g.draw(g.walk(ann).out(Knows))`.

        `x` is a node, a ref, an edge or a path, a list of them, a query or a walk. Edges and paths are drawn as they
        are. A node or a ref by itself is drawn with the edges that leave it, that arrive at it (`direction="into"`), or
        "both": one query for each node and direction, all in one round. `label` is the field of nodes that is written
        beside them; without it, it is their id. `edge_label` is the field that is written on edges, in place of their
        class. With `layers`, nodes stand in columns, one for each step from where paths and edges begin. At most `most`
        nodes are drawn, and the picture says if there are more.
        """
        gathering = self._gathering(x, direction, label, edge_label, layers, most)
        for each in _listed(x):
            if not gathering.add(each):
                break
        return self._run(self._drawn(gathering, direction))


class AsyncDraws(_ToDraw):
    """The call of `AsyncGraph`."""

    @abstractmethod
    async def _run(self, plan: Plan[T]) -> T: ...

    async def draw(
        self,
        x: Any,
        *,
        direction: str = "out",
        label: str | None = None,
        edge_label: str | None = None,
        layers: bool = False,
        most: int = 50,
    ) -> Drawing:
        """Draws a small graph, which a notebook shows; see `Graph.draw`."""
        gathering = self._gathering(x, direction, label, edge_label, layers, most)
        things = _listed(x)
        if isinstance(things, AsyncIterable):
            async for each in things:
                if not gathering.add(each):
                    break
        else:
            for each in things:
                if not gathering.add(each):
                    break
        return await self._run(self._drawn(gathering, direction))
