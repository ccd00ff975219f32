"""Document paths of one expression together: none may lie within another, or ask one thing to be a list and a map."""

from __future__ import annotations

from collections.abc import Sequence

from adjoin.errors import InvalidRequest
from adjoin.evaluate import path_text
from adjoin.expressions import Path
from adjoin.server.grammar.bindings import Bindings
from adjoin.server.grammar.syntax import Place


def projection_of(places: Sequence[Place], bindings: Bindings, purpose: str) -> tuple[Path, ...]:
    paths = tuple(bindings.path(place, purpose) for place in places)
    require_apart(paths, purpose)
    return paths


def require_apart(paths: Sequence[Path], purpose: str) -> None:
    """Reject two paths that overlap or conflict; of several pairs, the service names the one written last."""
    if len({path.steps[0] for path in paths}) == len(paths):
        return
    root = _Node(0, "")
    for index, path in enumerate(paths):
        node = root
        for step in path.steps:
            node = node.inner.setdefault(step, _Node(index, step))
        node.ends.append(_Node(index, None))
    clash = _clash(root)
    if clash is not None:
        how, *pair = clash
        one, two = (path_text(paths[index]) for index in sorted(pair))
        raise InvalidRequest(
            f"Invalid {purpose}: Two document paths {how} with each other; must remove or rewrite one of these"
            f" paths; path one: {one}, path two: {two}"
        )


class _Node:
    """A step that paths share, `first` the one that came here first; without a step, the end of a path."""

    __slots__ = ("ends", "first", "inner", "step")

    def __init__(self, first: int, step: str | int | None) -> None:
        self.first = first
        self.step = step
        self.inner: dict[str | int, _Node] = {}
        self.ends: list[_Node] = []

    def entries(self) -> list[_Node]:
        """What follows here, newest first."""
        return sorted([*self.inner.values(), *self.ends], key=lambda node: node.first, reverse=True)

    def last(self) -> int:
        """A path that goes through here: the one that the newest entry at each step leads to."""
        node = self
        while node.step is not None:
            node = node.entries()[0]
        return node.first


def _clash(node: _Node) -> tuple[str, int, int] | None:
    entries = node.entries()
    newest: dict[type, int] = {}
    """Ends, positions and names: where the newest of each is. An end clashes with all, others with another kind."""
    for place, entry in enumerate(entries):
        newest.setdefault(type(entry.step), place)
    for place, one in enumerate(entries):
        found = None if one.step is None else _clash(one)
        if found is not None:
            return found
        if one.step is None:
            rivals = [each for each in range(min(2, len(entries))) if each != place]
        else:
            rivals = [each for kind, each in newest.items() if kind is not type(one.step)]
        if rivals:
            other = entries[min(rivals)]
            how = "overlap" if one.step is None or other.step is None else "conflict"
            return how, one.last(), other.last()
    return None
