"""What a stored item means for a snapshot: a node that exists, an edge with its ends and sort keys, and their fields.

The layout says what items are. For most items it is enough to look at the literals with which their keys begin; any
other item is read by the layout's own code.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from pydantic_core import PydanticUndefined

from adjoin.dataclass import dataclass
from adjoin.entity_types import EdgeType, EntityType, NodeType
from adjoin.errors import InvalidItem, InvalidKey
from adjoin.layouts.bound import BoundLayout
from adjoin.layouts.key_values import sortable_text
from adjoin.layouts.keys import Part, Template
from adjoin.layouts.ranges import EdgeAccess
from adjoin.plans.reordering import with_index_keys
from adjoin.snapshots.relations import Sort, Sorts
from adjoin.values import AttributeValue, Item

NodeRow: TypeAlias = tuple[int, bytes, Sequence[Any]]
"""The number of a node's class, its node key, and its fields."""
EdgeRow: TypeAlias = tuple[int, int, bytes, int, bytes, Sorts, Sequence[Any]]
"""The number of an edge's relation, the class and the node key of its source and of its target, its sort keys, and its
fields."""
Row: TypeAlias = tuple[NodeRow | None, EdgeRow | None]
"""A child is a node, and an edge from its parent too."""
NOTHING: Row = (None, None)
_Values: TypeAlias = Callable[[Item], Sequence[Any]]


@dataclass(frozen=True)
class Held:
    """What a snapshot holds: classes of edges or children, those of the nodes at their ends, and fields."""

    relations: tuple[EdgeType | NodeType, ...]
    nodes: tuple[NodeType, ...]
    """By number; of a family, the head."""
    fields: Mapping[type[Any], Mapping[str, type]]
    """The fields that are held of each class, with their types."""


class RowReading:
    """Reads items."""

    def __init__(self, layout: BoundLayout, held: Held) -> None:
        self._layout, self._held = layout, held
        self._numbers = {kind.model: number for number, kind in enumerate(held.nodes)}
        self._relations = {kind.model: number for number, kind in enumerate(held.relations)}
        self._sorts = {kind.model: _Sorting(layout, kind) for kind in held.relations}
        kinds = [*held.nodes, *held.relations]
        self._values = {kind.model: _values(layout, kind, held.fields.get(kind.model, {})) for kind in kinds}
        self._short = _short_readers(self, layout, held)
        self._names = tuple(key.name for key in layout.definition.keys)
        self.makes_keys = any(sorting.makes_keys for sorting in self._sorts.values())
        """Whether stored edges may lack index keys that they should have, which are made here from their fields."""

    def read(self, item: Item) -> Row:
        """What an item means; nothing if it is of no class that is held."""
        for short in self._short:
            row = short(item)
            if row is not None:
                return row
        layout = self._layout
        if layout.is_bookkeeping(item):
            return NOTHING
        kind = layout.kind_of(item)
        if kind is None:
            return NOTHING
        kind = kind.whole
        node: NodeRow | None = None
        edge: EdgeRow | None = None
        if kind.model in self._numbers and isinstance(kind, NodeType):
            text = layout.text_of(kind, item).encode()
            node = (self._numbers[kind.model], text, self._values[kind.model](item))
        if kind.model in self._relations and isinstance(kind, EdgeType | NodeType):
            edge = self._edge(kind, item)
        return node, edge

    def _edge(self, kind: EdgeType | NodeType, item: Item) -> EdgeRow | None:
        try:
            source, target = self._layout.ends(kind, item)
        except InvalidKey:
            # An edge that another program has written to an id that no node can have leads nowhere.
            return None
        sorts = self._sorts[kind.model].of(item)
        if isinstance(kind, NodeType):
            # A child has one parent, so it needs no order.
            sorts = (sorts[0], (source.encode(), b""))
        return (
            self._relations[kind.model],
            self._class_of(kind.source, source),
            source.encode(),
            self._class_of(kind.target, target),
            target.encode(),
            sorts,
            self._values[kind.model](item),
        )

    def _class_of(self, end: NodeType, text: str) -> int:
        classes = end.classes
        kind = classes[0] if len(classes) == 1 else next(each for each in classes if self._layout.is_of(each, text))
        return self._numbers[kind.whole.model]

    # --- the fast path -------------------------------------------------------------------------

    def short_edge(self, kind: EdgeType) -> Callable[[Item], Row | None] | None:
        """A reader of edges whose keys are literals and ids that need no escape; None if the class has others."""
        layout = self._layout
        templates, sorting = layout.key_templates(kind), self._sorts[kind.model]
        ends = [layout.key_templates(end).text for end in (kind.source, kind.target) if len(end.classes) == 1]
        access = sorting.out
        is_short = (
            len(ends) == 2
            and layout.definition.sorts != ()
            and all(_is_plain(each) for each in (templates.partition, templates.sort, *ends))
            and templates.type_attribute is None
            and not templates.meets
            and access is not None
            and access.exclusive
            and access.index is None
            and not sorting.makes_keys
        )
        if not is_short:
            return None
        source, target = (end.lead for end in ends if end is not None)
        lead, sort_lead = templates.partition.lead, templates.sort.lead
        if lead != source or not sort_lead.endswith(target):
            return None
        relation = self._relations[kind.model]
        near_class, far_class = (self._numbers[end.whole.model] for end in (kind.source, kind.target))
        special, values, sorts = templates.partition.quoting.special, self._values[kind.model], sorting.of
        pk, sk = (key.name for key in layout.definition.keys)
        length, sort_length = len(lead), len(sort_lead)
        begin = sort_length - len(target)
        reverse, reverse_lead = sorting.plain_reverse, sorting.reverse_lead

        def read(item: Item) -> Row | None:
            partition, sort = item[pk]["S"], item[sk]["S"]
            if not sort.startswith(sort_lead) or not partition.startswith(lead):
                return None
            if special(partition, length) or special(sort, sort_length):
                return None
            if len(partition) == length or len(sort) == sort_length:
                return None
            far = sort[begin:].encode()
            if reverse is not None and reverse in item and item[reverse]["S"].startswith(reverse_lead):
                found: Sorts = (sort.encode(), b""), (item[reverse]["S"].encode(), b"")
            else:
                found = sorts(item)
            return None, (relation, near_class, partition.encode(), far_class, far, found, values(item))

        return read

    def short_node(self, kind: NodeType) -> Callable[[Item], Row | None] | None:
        """A reader of nodes, of the same sort."""
        layout = self._layout
        templates = layout.key_templates(kind)
        is_short = (
            kind.model not in self._relations
            and kind.head is None
            and not kind.family
            and layout.definition.sorts != ()
            and _is_plain(templates.partition)
            and _is_plain(templates.text)
            and templates.type_attribute is None
            and templates.sort.type == "S"
            and not templates.sort.parts
            and not templates.is_shared
        )
        if not is_short:
            return None
        number, values = self._numbers[kind.model], self._values[kind.model]
        lead, sort, special = templates.partition.lead, templates.sort.lead, templates.partition.quoting.special
        length = len(lead)
        pk, sk = (key.name for key in layout.definition.keys)

        def read(item: Item) -> Row | None:
            partition = item[pk]["S"]
            if item[sk]["S"] != sort or not partition.startswith(lead):
                return None
            if special(partition, length) or len(partition) == length:
                return None
            return (number, partition.encode(), values(item)), None

        return read


def _short_readers(reading: RowReading, layout: BoundLayout, held: Held) -> list[Callable[[Item], Row | None]]:
    if any(key.type != "S" for key in layout.definition.keys):
        return []
    found = [reading.short_edge(kind) for kind in held.relations if isinstance(kind, EdgeType)]
    found += [reading.short_node(kind) for kind in held.nodes]
    return [each for each in found if each is not None]


def _is_plain(template: Template | None) -> bool:
    return template is not None and template.is_tail and not template.parts[0].transform.name and template.type == "S"


# --- sort keys ---------------------------------------------------------------------------------


class _Sorting:
    """The sort keys of the edges of one class, where they are found from their sources and from their targets."""

    def __init__(self, layout: BoundLayout, kind: EdgeType | NodeType) -> None:
        self.out, into = layout.edge_access(kind, "out"), layout.edge_access(kind, "into")
        self._layout, self._kind = layout, kind
        self._keys = tuple(key.name for key in layout.definition.keys)
        indexes = [None if access is None else access.index for access in (self.out, into)]
        self._lacking = layout.due.lacking_in(kind, indexes) if isinstance(kind, EdgeType) else []
        self._out = None if self.out is None else self._reader(self.out, far_ends_tell(layout, kind, "out"))
        self._into = None if into is None else self._reader(into, far_ends_tell(layout, kind, "into"))
        if isinstance(kind, NodeType) or kind.symmetric:
            self._into = None
        self.plain_reverse: str | None = None
        """The sort key of the reverse index, if it is text and both far ends tell the order."""
        are_told = all(far_ends_tell(layout, kind, direction) for direction in ("out", "into"))
        if self._into is not None and into is not None and are_told and into.sort is not None:
            is_text = into.index is not None and into.sort.type == "S" and into.partition_key != into.sort_key
            self.plain_reverse = into.sort_key if is_text else None
        self.reverse_lead = "" if into is None or into.sort is None else into.sort.lead

    @property
    def makes_keys(self) -> bool:
        """Whether stored edges may lack index keys because a migration is due."""
        return bool(self._lacking)

    def of(self, item: Item) -> Sorts:
        out, into = self._out, self._into
        if self._lacking and isinstance(self._kind, EdgeType):
            item = with_index_keys(self._layout, self._kind, item, self._lacking) or item
        return None if out is None else out(item), None if into is None else into(item)

    def _reader(self, access: EdgeAccess, is_told: bool) -> Callable[[Item], Sort | None]:
        partition, keys, sort = access.partition_key, self._keys, access.sort_key
        if access.index is None:
            return lambda item: (b"" if sort is None else _ordered(item[sort]), b"")
        # A query reads only keys that begin so; another program may have written others.
        lead = access.sort.lead.encode() if access.sort is not None and access.sort.type == "S" else b""

        def read(item: Item) -> Sort | None:
            if partition not in item or (sort is not None and sort not in item):
                return None
            text = b"" if sort is None else _ordered(item[sort])
            if not text.startswith(lead):
                return None
            # If the far end tells the order, no two edges at a node have the same sort key.
            return text, b"" if is_told else b"\0" + b"\0".join(_ordered(item[key]) for key in keys)

        return read


def far_ends_tell(layout: BoundLayout, kind: EdgeType | NodeType, direction: str) -> bool:
    """Whether the sort keys of a class are made of the node at the far end alone, which then tells their order."""
    if isinstance(kind, NodeType):
        # A child has one parent.
        return direction == "into"
    access = layout.edge_access(kind, direction)
    # Parallel edges have the same far end, so it cannot tell their order.
    if access is None or access.sort is None or layout.key_fields(kind):
        return False
    # A symmetric edge is found by its target in both directions.
    side, end = ("target.", kind.target) if direction == "out" or kind.symmetric else ("source.", kind.source)
    sort = access.sort
    if len(sort.parts) == 1 and sort.parts[0].among:
        if sort.parts[0].name != f"{side}ref" or sort.pieces[-1] is not sort.parts[0]:
            return False
        spelled = {each.name: _spelled(each.pieces, "") for each in sort.parts[0].among}
        return all(spelled.get(each.name) == _node_spelling(layout, each) for each in end.classes)
    node = layout.key_templates(end).text if len(end.classes) == 1 else None
    if node is None or (node.quoting.ends, node.quoting.escape) != (sort.quoting.ends, sort.quoting.escape):
        return False
    lead, *rest = _spelled(sort.pieces, side)
    node_lead, *node_rest = _spelled(node.pieces, "")
    return rest == node_rest and isinstance(lead, str) and isinstance(node_lead, str) and lead.endswith(node_lead)


def _node_spelling(layout: BoundLayout, kind: NodeType) -> list[str | tuple[str, str]]:
    template = layout.key_templates(kind).text
    assert template is not None
    return _spelled(template.pieces, "")


def _spelled(pieces: Iterable[str | Part], side: str) -> list[str | tuple[str, str]]:
    """The pieces of a template: literals, and parts by their names, without the side of an edge, and transforms."""
    found: list[str | tuple[str, str]] = [""]
    for piece in pieces:
        if isinstance(piece, str):
            last = found.pop() if isinstance(found[-1], str) else ""
            found.append(str(last) + piece)
        else:
            found.append((piece.name.removeprefix(side), piece.transform.name))
    return found


def _ordered(value: AttributeValue) -> bytes:
    """Bytes that sort as DynamoDB sorts this key."""
    text: str | None = value.get("S")
    if text is not None:
        return text.encode()
    return sortable_text(Decimal(value["N"])).encode() if "N" in value else a2b_base64(value["B"])


# --- fields ------------------------------------------------------------------------------------


def _values(layout: BoundLayout, kind: EntityType, fields: Mapping[str, type]) -> _Values:
    """A reader of the fields that are held of a class, in order."""
    if not fields:
        return lambda item: ()
    readers = [_value(layout, kind, name, plain) for name, plain in fields.items()]
    if len(readers) == 1:
        only = readers[0]
        return lambda item: (only(item),)
    return lambda item: [read(item) for read in readers]


def _value(layout: BoundLayout, kind: EntityType, name: str, plain: type) -> Callable[[Item], Any]:
    def general(item: Item) -> Any:
        entity = layout.decode(kind, item)
        if entity is None:
            raise InvalidItem(f"a stored item is not a valid {kind.name}; correct the item or the class")
        return getattr(entity, name, None)

    if not layout.is_stored(kind, name) or name in kind.formats or plain is bool:
        return general
    attribute, default = kind.attributes[name], kind.fields[name].get_default(call_default_factory=False)
    is_checked = kind.fields[name].metadata or default is PydanticUndefined or kind.former.get(name)

    def read(item: Item) -> Any:
        stored = item.get(attribute)
        if stored is None:
            return general(item) if is_checked else default
        if "N" in stored:
            try:
                return plain(stored["N"])
            except ValueError:
                return general(item)
        return None if "NULL" in stored else general(item)

    return read
