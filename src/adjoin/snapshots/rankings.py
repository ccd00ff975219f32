"""What a snapshot computes about all nodes: a value for each, or groups of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adjoin.errors import InvalidValue, shown
from adjoin.model import Node, Ref
from adjoin.queries import whole_number
from adjoin.snapshots.arrays import Array
from adjoin.snapshots.node_table import UNKNOWN, NodeTable


class Scores(Mapping[Ref[Any], Any]):
    """A value for each node, by its ref. `top` has those with the greatest values.

    `numbers` are the numbers of the nodes in the snapshot, in order, and `values_array` has their values.
    """

    def __init__(self, nodes: NodeTable, numbers: Array, values: Array) -> None:
        self._nodes, self.numbers, self.values_array = nodes, numbers, values

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Ref[Any]]:
        return map(self._nodes.ref, self.numbers.tolist())

    def __getitem__(self, node: Node | Ref[Any]) -> Any:
        number = _number(self._nodes, node)
        place = int(np.searchsorted(self.numbers, number))
        if number == UNKNOWN or place == len(self.numbers) or self.numbers[place] != number:
            raise KeyError(node)
        return self.values_array[place].item()

    def top(self, number: int = 10) -> list[tuple[Ref[Any], Any]]:
        """Returns the nodes with the greatest values, the greatest first; those with equal values by their keys."""
        most = min(whole_number("number", number), len(self.numbers))
        if not most:
            return []
        values = self.values_array
        # All that may be among them, so that equal values at the end are chosen by keys, and not by chance.
        least = np.partition(values, len(values) - most)[len(values) - most]
        places = np.nonzero(values >= least)[0]
        texts = [self._nodes.texts[each] for each in self.numbers[places].tolist()]
        order = sorted(range(len(places)), key=lambda at: (-values[places[at]].item(), texts[at]))[:most]
        return [(self._nodes.ref(int(self.numbers[places[at]])), values[places[at]].item()) for at in order]

    def __repr__(self) -> str:
        return f"<Scores of {len(self):,} nodes; ask for .top() or for that of a node>"


class Groups(Sequence[list[Ref[Any]]]):
    """Groups of nodes, the largest first; each node is in one. `of` is the group of a node."""

    def __init__(self, nodes: NodeTable, numbers: Array, labels: Array) -> None:
        """`labels` says for each node which group it is in, by any number."""
        self._nodes, self.numbers = nodes, numbers
        _, first, which, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
        # Of equal size, the one with the first node comes first. Nodes are in the order of their numbers.
        ranks = np.empty(len(sizes), np.int64)
        ranks[np.lexsort((first, -sizes))] = np.arange(len(sizes))
        self.labels = ranks[which]
        """The place of each node's group."""
        self.sizes: list[int] = np.sort(sizes)[::-1].tolist()
        """How many nodes each group has."""
        self._order = np.argsort(self.labels, kind="stable")
        self._ends = np.cumsum(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        at = range(len(self))[place]
        members = self._order[self._ends[at] - self.sizes[at] : self._ends[at]]
        return [self._nodes.ref(number) for number in self.numbers[members].tolist()]

    def place(self, node: Node | Ref[Any]) -> int:
        """Returns the place of the group that a node is in: 0 for the largest group."""
        number = _number(self._nodes, node)
        at = int(np.searchsorted(self.numbers, number))
        if number == UNKNOWN or at == len(self.numbers) or self.numbers[at] != number:
            raise InvalidValue(f"{shown(node)} is in no group, because it does not exist; name another node")
        return int(self.labels[at])

    def of(self, node: Node | Ref[Any]) -> list[Ref[Any]]:
        """Returns the group that a node is in."""
        found: list[Ref[Any]] = self[self.place(node)]
        return found

    def __repr__(self) -> str:
        return f"<{len(self):,} groups of {len(self.numbers):,} nodes>"


def _number(nodes: NodeTable, node: Any) -> int:
    node = node if isinstance(node, Node | Ref) else getattr(node, "ref", node)
    if not isinstance(node, Node | Ref):
        raise InvalidValue(f"a node or a ref is needed, got {shown(node)}; pass Model.ref(id)")
    return nodes.number(*nodes.key_of(node))
