"""What the page can ask: a table of names and functions. Each takes a JSON object and returns one.

An error of adjoin becomes an answer with its name and message, as people would read it on the command line. What would
change the table is not in the table of a graph that was opened to be read.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from adjoin.errors import AdjoinError, InvalidValue, shown
from adjoin.explorer.classes import described
from adjoin.explorer.design import Design
from adjoin.explorer.editing import Editing
from adjoin.explorer.handles import Handles
from adjoin.explorer.neighbourhoods import Neighbourhoods
from adjoin.explorer.opening import Explored
from adjoin.explorer.questions import Questions
from adjoin.explorer.sample import Samples
from adjoin.explorer.stored import TableItems
from adjoin.explorer.vitals import Vitals

_log = logging.getLogger(__name__)

Ask: TypeAlias = Callable[..., dict[str, Any]]


class Api:
    """The answers for one graph."""

    def __init__(self, explored: Explored) -> None:
        handles = Handles(explored.layout)
        graph = Neighbourhoods(explored, handles)
        samples = Samples(explored)
        vitals = Vitals(explored, handles, samples)
        self._asks: dict[str, Ask] = {
            "model": lambda: described(explored),
            "start": graph.start,
            "node": graph.node,
            "nodes": graph.read,
            "edge": graph.edge,
            "neighbours": graph.neighbours,
            "find": graph.find,
            "path": graph.path,
            "recommend": graph.recommend,
            "items": TableItems(explored, handles).items,
            "query": Questions(explored, handles).query,
            "design": Design(explored, samples).design,
            "health": vitals.health,
            "count": vitals.count,
            "hottest": vitals.hottest,
        }
        if explored.is_writable:
            editing = Editing(explored, handles)
            self._asks |= {
                "add": editing.add,
                "connect": editing.connect,
                "change": editing.change,
                "delete": editing.delete,
            }

    @property
    def names(self) -> list[str]:
        return [*self._asks]

    def answer(self, name: str, asked: Any) -> tuple[int, dict[str, Any]]:
        """The status and the answer to what the page asks."""
        call = self._asks.get(name)
        if call is None:
            return 404, _problem("NotFound", f"the explorer has no {shown(name)}; it has {', '.join(self._asks)}")
        try:
            return 200, call(**_arguments(call, asked))
        except AdjoinError as error:
            return 400, _problem(type(error).__name__, str(error))
        except Exception:
            _log.exception("an error in the explorer ended the request %r", name)
            return 500, _problem("InternalError", "an error in the explorer ended the request; the terminal shows it")


def _arguments(call: Ask, asked: Any) -> dict[str, Any]:
    if not isinstance(asked, Mapping):
        raise InvalidValue(f"an object is needed, got {shown(asked)}")
    known = inspect.signature(call).parameters
    for name in asked:
        if name not in known:
            raise InvalidValue(f"{shown(name)} is not known here; pass only {', '.join(known) or 'nothing'}")
    for name, parameter in known.items():
        if name not in asked and parameter.default is inspect.Parameter.empty:
            raise InvalidValue(f"{name!r} is missing; pass it")
    return dict(asked)


def _problem(name: str, message: str) -> dict[str, Any]:
    return {"error": {"name": name, "message": message}}
