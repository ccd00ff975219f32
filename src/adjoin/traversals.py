"""The methods of a graph that follow edges over several hops.

`Traversing` checks the arguments of each call and makes its plan, once for both graphs. `Traversals` and
`AsyncTraversals` run the plans; `Graph` and `AsyncGraph` inherit from them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from adjoin.errors import InvalidValue
from adjoin.model import Node, Ref
from adjoin.plans.frontier import CAP
from adjoin.plans.routing import node_key
from adjoin.plans.steps.spending import Budget
from adjoin.verbs import Verbs
from adjoin.walk_steps import Traversal
from adjoin.walks import AsyncWalk, Walk


class Traversing(Verbs):
    """What both graphs share: each call as a plan."""

    _ticks: Callable[[], float] = staticmethod(time.monotonic)
    """The clock by which budgets are measured, in seconds."""

    def _traversal(self, budget: Budget | None, cap: int | None, consistent: bool | None) -> Traversal:
        return Traversal(self._context, self._ticks, budget, cap, self._consistency(consistent))

    def _starts(self, x: Any) -> dict[str, Any]:
        """Where a walk begins: a node or several of them, or an id whose class its first step tells."""
        if isinstance(x, list) and all(isinstance(each, Node | Ref) for each in x):
            if not x:
                raise InvalidValue("a walk needs a node to begin with, got an empty list; pass a node or a ref")
            starts = tuple(dict.fromkeys(node_key(self._layout, each) for each in x))
            return {"_starts": starts, "_near": frozenset(model for model, _ in starts)}
        if isinstance(x, Node | Ref):
            return self._starts([x])
        if x is None or isinstance(x, type):
            raise InvalidValue("a walk begins with a node, a ref or an id; pass Model.ref(id)")
        return {"_starts": (), "_near": frozenset(), "_id": x}


# --- synchronous -------------------------------------------------------------------------------


class Traversals(Traversing):
    """The methods of `Graph` that follow edges."""

    def walk(
        self,
        x: Any,
        *,
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> Walk:
        """Returns a walk that begins with a node: `g.walk(ann).out(Knows).out(Knows).distinct().nodes()`.

        `x` is a node or a ref, a list of them, or an id if the first step tells its class. `budget` limits what the
        walk may spend. `cap` is how many edges of one class are read at one node at most; results say which nodes have
        more. With `consistent`, reads of the table are strongly consistent; those of indexes cannot be.
        """
        return Walk(self._traversal(budget, cap, consistent), **self._starts(x))


# --- asynchronous ------------------------------------------------------------------------------


class AsyncTraversals(Traversing):
    """The methods of `AsyncGraph` that follow edges."""

    def walk(
        self,
        x: Any,
        *,
        budget: Budget | None = None,
        cap: int | None = CAP,
        consistent: bool | None = None,
    ) -> AsyncWalk:
        """Returns a walk that begins with a node: `await g.walk(ann).out(Knows).out(Knows).distinct().nodes()`.

        `x` is a node or a ref, a list of them, or an id if the first step tells its class. `budget` limits what the
        walk may spend. `cap` is how many edges of one class are read at one node at most; results say which nodes have
        more. With `consistent`, reads of the table are strongly consistent; those of indexes cannot be.
        """
        return AsyncWalk(self._traversal(budget, cap, consistent), **self._starts(x))
