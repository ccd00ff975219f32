"""`{tenant}` in templates: where the tenant stands in the keys of a table that names it itself.

    Keys(partition="TENANT#{tenant}#USER#{id}")

Every partition key begins with the same text, the tenant and "#". That is the prefix of a tenant's keys, as `acme#` is
in a layout without {tenant}; so the templates are compiled without it, and no id reaches the partition of another
tenant.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adjoin.entity_types import NodeType
from adjoin.errors import InvalidModel
from adjoin.layouts.interface import Index, Keys
from adjoin.schema import Schema

if TYPE_CHECKING:
    from adjoin.layouts.adjacency_list import AdjacencyList

_TENANT = "{tenant}"
_BEGIN = re.compile(r"([^{}]*)\{tenant\}#(?=.)", re.DOTALL)


def without_tenant(layout: AdjacencyList, schema: Schema) -> tuple[AdjacencyList, str | None]:
    """The layout with templates that do not name the tenant, and the text before it; None if they never did."""
    found = [text for _, text in _partitions(layout) if _TENANT in text]
    if not found:
        for text in _others(layout):
            _refuse(text)
        return layout, None
    begin = _BEGIN.match(found[0])
    if begin is None:
        _refuse(found[0])
    assert begin is not None
    taken = _Taken(layout, begin[0])
    for kind in schema.nodes.values():
        own = layout.keys.get(kind.whole.model)
        if isinstance(kind, NodeType) and kind.parent is None and (own is None or own.partition is None):
            raise InvalidModel(
                f"the partition key of {kind.name} does not name the tenant, and other keys of the layout do, so "
                f"tenants would share its items; give it Keys(partition={begin[0] + '…'!r})"
            )
    for where, text in _partitions(layout):
        if not text.startswith(begin[0]) and text not in ("{source}", "{target}", "{parent}"):
            raise InvalidModel(
                f"the partition key {text!r} of {where} does not begin with {begin[0]!r}, as other keys of the layout "
                f"do, so tenants would share it; begin it so"
            )
    indexes = [taken.index(each) for each in layout.indexes]
    reverse = None if layout.reverse is None else taken.index(layout.reverse)
    keys = {model: taken.keys(own) for model, own in layout.keys.items()}
    bare = replace(
        layout,
        keys=keys,
        indexes=indexes,
        reverse=reverse,
        ordered=taken.index(layout.ordered),
        node=taken.sort(layout.node),
        edge=taken.sort(layout.edge),
    )
    for text in (*(text for _, text in _partitions(bare)), *_others(bare)):
        _refuse(text)
    return bare, begin[1]


def _refuse(text: str) -> None:
    if _TENANT in text:
        raise InvalidModel(
            f"the key template {text!r} names the tenant in another place than the beginning of a partition key; begin "
            f"each partition key with the same text, {_TENANT} and '#', such as 'TENANT#{_TENANT}#USER#{{id}}'"
        )


class _Taken:
    """Takes the beginning with the tenant off templates."""

    def __init__(self, layout: AdjacencyList, begin: str) -> None:
        self._begin = begin
        indexes = [each for each in (layout.reverse, *layout.indexes) if each is not None]
        self._is_inverted = any(layout.sort_key in index.partition_keys for index in indexes)

    def partition(self, text: Any) -> Any:
        return text.removeprefix(self._begin) if isinstance(text, str) else text

    def sort(self, text: Any) -> Any:
        """The sort key of the table begins with the tenant only if it is the partition key of an index."""
        return self.partition(text) if self._is_inverted else text

    def index(self, index: Index) -> Index:
        return replace(index, partition=self.partition(index.partition))

    def keys(self, own: Keys) -> Keys:
        indexes: dict[str, Any] = {
            name: self.partition(given) if isinstance(given, str) else (self.partition(given[0]), *given[1:])
            for name, given in own.indexes.items()
        }
        return replace(
            own,
            partition=self.partition(own.partition),
            sort=self.sort(own.sort),
            reverse_partition=self.partition(own.reverse_partition),
            indexes=indexes,
        )


def _partitions(layout: AdjacencyList) -> list[tuple[str, str]]:
    """The templates of partition keys, each with what it is for."""
    indexes = [each for each in (layout.reverse, layout.ordered, *layout.indexes) if each is not None]
    found: list[tuple[str, Any]] = [(f"the index {index.name!r}", index.partition) for index in indexes]
    for model, own in layout.keys.items():
        given = [each if isinstance(each, str) else each[0] for each in own.indexes.values()]
        found += [(model.__name__, text) for text in (own.partition, own.reverse_partition, *given)]
    return [(where, text) for where, text in found if isinstance(text, str)]


def _others(layout: AdjacencyList) -> list[str]:
    """All other templates."""
    indexes = [each for each in (layout.reverse, layout.ordered, *layout.indexes) if each is not None]
    found: list[Any] = [layout.node, layout.edge, *(index.sort for index in indexes)]
    for own in layout.keys.values():
        found += [own.sort, own.reverse_sort, *own.attributes.values()]
        found += [each[1] for each in own.indexes.values() if not isinstance(each, str) and len(each) > 1]
    return [text for text in found if isinstance(text, str)]
