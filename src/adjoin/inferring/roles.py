"""What a group of items is: nodes, children of nodes, or edges between them, told by the shapes of keys.

A node has its own id and nothing else in its keys. A group in the same partitions that has more in its sort key is
either of edges, if that is the key or the id of other nodes, or of children. Each group has a list of roles, the most
telling first. Nodes are the last one, which always fits: all that is in the keys is then the id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from adjoin.dataclass import dataclass
from adjoin.inferring.grouping import Group, KeyShape
from adjoin.inferring.naming import words_of
from adjoin.inferring.program import Kind

_HOMES = frozenset(("META", "METADATA", "INFO", "PROFILE", "DETAILS", "DETAIL", "ROOT", "HEAD", "SELF", "A", "#META"))
"""Sort keys of the item that is the node itself, if several items of a partition may be."""
_MOST_STRANGERS = 0.2
"""The share of values that may be no ids of the nodes that they are thought to name."""


@dataclass(frozen=True)
class Role:
    """A kind, with the groups of its ends; each has the columns of its id, as columns of this group."""

    kind: Kind
    ends: tuple[tuple[int, Mapping[int, int]], ...] = ()
    """For each end, the number of its group, and the column here for each of its columns."""

    @property
    def taken(self) -> set[int]:
        return {own for _, columns in self.ends for own in columns.values()}


NODE = Role("node")


def ids(group: Group) -> list[int]:
    """The columns in the keys of a group, in the order of the keys."""
    return list(dict.fromkeys(each for each in (*group.partition, *group.sort) if isinstance(each, int)))


def is_alone(group: Group) -> bool:
    """Whether the partition key holds the whole id of the items."""
    own = {each for each in group.partition if isinstance(each, int)}
    return bool(own) and {*ids(group)} == own


@dataclass
class Roles:
    """The roles of all groups of a table."""

    groups: Sequence[Group]
    named: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """Columns of groups that an index says to be ids, and the groups of their nodes."""
    homes: dict[KeyShape, int] = field(init=False)
    """For each shape of partition keys, the group of the node itself."""

    def __post_init__(self) -> None:
        self.homes = {}
        # Several groups may have the partition keys of one class of nodes. One of them is the node, the others belong
        # to it.
        for number, group in enumerate(self.groups):
            shape = _numbered(group.partition)
            if is_alone(group):
                other = self.homes.get(shape)
                if other is None or self._is_home(group) > self._is_home(self.groups[other]):
                    self.homes[shape] = number

    def _is_home(self, group: Group) -> tuple[bool, bool, int]:
        sort = group.sort[0] if len(group.sort) == 1 else None
        is_own = any(isinstance(each, int) for each in group.sort) or group.sort == ()
        word = sort.strip("#") if isinstance(sort, str) else ""
        is_word = word.upper() in _HOMES or word.upper() in _label(group.partition).upper().split("#")
        return is_own or is_word, is_own, len(group.items)

    def of(self, number: int) -> list[Role]:
        """The roles that a group may have, the most telling first."""
        group = self.groups[number]
        found = [] if self._is_node(number) else [*self._edges(number), *self._children(number)]
        if not found and not is_alone(group):
            found = [*self._edges_apart(number)]
        return [*found, NODE]

    def _is_node(self, number: int) -> bool:
        return self.homes.get(_numbered(self.groups[number].partition)) == number

    def _children(self, number: int) -> Iterator[Role]:
        group = self.groups[number]
        nested = []
        for other, parent in enumerate(self.groups):
            columns = _same(parent.partition, group.partition)
            if other == number or columns is None or is_alone(parent):
                continue
            whole = _begins(parent.sort, group.sort, columns)
            if whole is not None and {*whole} >= {*ids(parent)}:
                nested.append((len(parent.sort), other, whole))
        # The longest shape is the nearest parent: a comment on a post is not a child of the author of the post.
        for _, other, whole in sorted(nested, key=lambda each: -each[0]):
            yield Role("child", ((other, whole),))
        home = self.homes.get(_numbered(group.partition))
        if home is not None and home != number:
            columns = _same(self.groups[home].partition, group.partition)
            if columns is not None and self._are_ids(home, columns, number):
                yield Role("child", ((home, columns),))

    def _edges(self, number: int) -> Iterator[Role]:
        group = self.groups[number]
        home = self.homes.get(_numbered(group.partition))
        if home is None or home == number:
            return
        columns = _same(self.groups[home].partition, group.partition)
        if columns is None or not self._are_ids(home, columns, number):
            return
        for target in self._ends(number, group.sort, {*columns.values()}):
            yield Role("edge", ((home, columns), target))

    def _edges_apart(self, number: int) -> Iterator[Role]:
        """Edges in partitions of their own, with the ids of both ends somewhere in their keys."""
        group = self.groups[number]
        for source in self._ends(number, group.partition, set()):
            taken = {*source[1].values()}
            for shape in (group.sort, group.partition):
                for target in self._ends(number, shape, taken):
                    yield Role("edge", (source, target))

    def _ends(self, number: int, shape: KeyShape, taken: set[int]) -> list[tuple[int, Mapping[int, int]]]:
        """The nodes that a key names, besides columns that are taken: by their keys, then by their ids."""
        by_key: list[tuple[int, Mapping[int, int]]] = [
            (other, {ids(self.groups[other])[0]: column})
            for (where, column), other in self.named.items()
            if where == number and column in shape and column not in taken
        ]
        by_id: list[tuple[int, Mapping[int, int]]] = []
        for other in self.homes.values():
            node = self.groups[other]
            named = _within(node.partition, shape)
            if named is not None and not {*named.values()} & taken and _label(node.partition):
                by_key += [(other, named)] if (other, named) not in by_key else []
                continue
            if len(ids(node)) != 1:
                continue
            for place, piece in enumerate(shape):
                if isinstance(piece, int) and piece not in taken:
                    columns = {ids(node)[0]: piece}
                    before = shape[place - 1] if place else ""
                    if self._name(number, str(before), other, columns):
                        by_id.append((other, columns))
        return by_key + by_id

    def _name(self, number: int, before: str, other: int, columns: Mapping[int, int]) -> bool:
        """Whether a column holds ids of nodes: most of its values are, and they are not just small numbers."""
        texts = self.groups[number].columns[next(iter(columns.values()))]
        if self._strangers(other, columns, number) > _MOST_STRANGERS:
            return False
        label = {*words_of(_label(self.groups[other].partition))}
        is_labelled = bool(label & {*words_of(before)})
        # Small numbers are the ids of something in every table, so that they alone tell nothing.
        return is_labelled or (len({*texts}) > 1 and not all(re.fullmatch(r"\d{1,4}", text) for text in texts))

    def _are_ids(self, other: int, columns: Mapping[int, int], number: int) -> bool:
        """Whether keys of the same shape name the same nodes: by a label, or because most values are their ids."""
        return bool(_label(self.groups[other].partition)) or self._strangers(other, columns, number) <= _MOST_STRANGERS

    def _strangers(self, other: int, columns: Mapping[int, int], number: int) -> float:
        """The share of values in columns that are no ids of nodes of another group."""
        group, node = self.groups[number], self.groups[other]
        known = {*zip(*(node.columns[theirs] for theirs in columns), strict=True)}
        own = {*zip(*(group.columns[ours] for ours in columns.values()), strict=True)}
        return len(own - known) / len(own) if own else 1.0


def _label(shape: KeyShape) -> str:
    """The literal with which a key begins."""
    return shape[0] if shape and isinstance(shape[0], str) else ""


def _numbered(shape: KeyShape) -> KeyShape:
    """A shape with its columns numbered from 0."""
    numbers = {each: number for number, each in enumerate(dict.fromkeys(x for x in shape if isinstance(x, int)))}
    return tuple(numbers[each] if isinstance(each, int) else each for each in shape)


def _same(shape: KeyShape, other: KeyShape) -> dict[int, int] | None:
    """The columns of the other shape for those of a shape, if both have the same literals."""
    if len(shape) != len(other):
        return None
    columns: dict[int, int] = {}
    for one, two in zip(shape, other, strict=True):
        if isinstance(one, int) and isinstance(two, int):
            if columns.setdefault(one, two) != two:
                return None
        elif one != two:
            return None
    return columns


def _begins(shape: KeyShape, other: KeyShape, columns: Mapping[int, int]) -> dict[int, int] | None:
    """The same for a shape with which the other one begins, and goes on after a separator."""
    if len(shape) >= len(other) or not shape or not isinstance(shape[-1], int):
        return None
    found = _same(shape, other[: len(shape)])
    if found is None or any(columns.get(one, two) != two for one, two in found.items()):
        return None
    return {**columns, **found}


def _within(shape: KeyShape, other: KeyShape) -> dict[int, int] | None:
    """The same for a shape that is a part of the other one."""
    if not shape or not isinstance(shape[0], str):
        return None
    for at in range(len(other) - len(shape) + 1):
        first = other[at]
        if not isinstance(first, str) or not first.endswith(shape[0]):
            continue
        before = first[: len(first) - len(shape[0])]
        if (before and before[-1].isalnum()) or len(other) == at:
            continue
        part = (shape[0], *other[at + 1 : at + len(shape)])
        last = part[-1]
        if isinstance(last, str) and isinstance(shape[-1], str) and len(shape) > 1:
            part = (*part[:-1], shape[-1] if last.startswith(shape[-1]) else last)
        found = _same(shape, part)
        if found is not None:
            return found
    return None
