"""The nodes of a snapshot: each has a number, and its class and node key can be found by it, and it by them.

The first numbers are in the order of node keys, so that edges which are sorted by the key of their far end are sorted
by its number. Nodes that came later follow in the order in which they came. A node that does not exist has a number
too, if an edge names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from adjoin.entity_types import NodeType
from adjoin.layouts.bound import BoundLayout
from adjoin.model import Node, Ref, node_id
from adjoin.plans.frontier import NodeKey
from adjoin.snapshots.arrays import Array, Texts, grown
from adjoin.snapshots.columns import HeldColumn
from adjoin.snapshots.kernels import fill_slots, found_number

UNKNOWN = -1
"""The number of a node that neither exists nor is named by an edge."""


class NodeTable:
    """All nodes, by number."""

    def __init__(
        self,
        layout: BoundLayout,
        kinds: Sequence[NodeType],
        texts: Texts,
        classes: Array,
        exists: Array,
        columns: dict[tuple[int, str], HeldColumn],
        slots: Array | None = None,
    ) -> None:
        self._layout = layout
        self.kinds = tuple(kinds)
        """The classes of nodes; the number of a class is its place."""
        self.class_numbers = {kind.model: number for number, kind in enumerate(kinds)}
        self.texts, self.classes, self.exists, self.columns = texts, classes, exists, columns
        self._spellings = [_Spelling(layout, kind) for kind in kinds]
        self.slots = self._filled() if slots is None else slots
        self._class_view = self.classes.data
        self.named = {kind.model: (number, self._spellings[number]) for number, kind in enumerate(self.kinds)}
        self._hold()
        self._later: dict[tuple[int, bytes], int] = {}
        self._keys: dict[int, NodeKey] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def _hold(self) -> None:
        """Writes down where the arrays are in which nodes of the beginning are found. Later ones are not in them."""
        self._found_in = self.slots, self.texts.ends, self.texts.blob, self.classes
        assert [each.dtype.name for each in self._found_in] == ["int32", "int64", "uint8", "uint8"]
        assert all(each.flags.c_contiguous for each in self._found_in)
        at = [each.ctypes.data for each in self._found_in]
        self._record = np.array([at[0], len(self.slots) - 1, *at[1:]], np.int64)
        self._at = int(self._record.ctypes.data)

    def _filled(self) -> Array:
        """A hash table of all numbers with open addressing, at most half full."""
        count = len(self.texts)
        slots = np.full(1 << max(4, (2 * count).bit_length()), UNKNOWN, np.int32)
        classes = self.classes.tolist()
        hashes = np.fromiter((crc32(self.texts[at], classes[at]) for at in range(count)), np.uint32, count)
        fill_slots(hashes, slots)
        return slots

    # --- numbers -------------------------------------------------------------------------------

    def find(self, class_number: int, text: bytes) -> int:
        """The number of a node; -1 if it has none."""
        number: int = found_number(self._at, text, crc32(text, class_number), class_number)
        return self._later.get((class_number, text), UNKNOWN) if number < 0 and self._later else number

    def add(self, class_number: int, text: bytes) -> int:
        """A number for a node that has none."""
        number = len(self.texts)
        self.texts.put(number, text)
        if number >= len(self.classes):
            self.classes, self.exists = grown(self.classes, number + 1), grown(self.exists, number + 1)
            self._class_view = self.classes.data
        self.classes[number], self.exists[number] = class_number, False
        for column in self.columns.values():
            column.reserve(number + 1)
        self._later[class_number, text] = number
        return number

    def number(self, model: type[Any], id: Any) -> int:
        """The number of a node, of which the class and the id are given; -1 if it has none."""
        named = self.named.get(model)
        return UNKNOWN if named is None else self.number_as(named, id)

    def number_as(self, named: tuple[int, _Spelling], id: Any) -> int:
        """The same for a class as it is in `named`."""
        class_number, spelling = named
        # As `Spelling.text` and `find` have it, without the calls, because two hops take little longer than these.
        if spelling.lead is not None and type(id) is str and id and spelling.special(id) is None:
            text = (spelling.lead + id).encode()
        else:
            text = spelling.text(id)
        number: int = found_number(self._at, text, crc32(text, class_number), class_number)
        return self._later.get((class_number, text), UNKNOWN) if number < 0 and self._later else number

    # --- nodes ---------------------------------------------------------------------------------

    def key(self, number: int) -> NodeKey:
        """The class and the id of a node."""
        key = self._keys.get(number)
        if key is None:
            class_number = self._class_view[number]
            id = self._spellings[class_number].id(self.texts[number])
            key = self._keys[number] = (self.kinds[class_number].model, id)
        return key

    def ref(self, number: int) -> Ref[Any]:
        return Ref(*self.key(number))

    def key_of(self, node: Node | Ref[Any]) -> NodeKey:
        """The class, of a family the head, and the id of a node that a program names."""
        model = node.model if isinstance(node, Ref) else type(node)
        kind = self._layout.schema.node(model).whole
        return kind.model, kind.id(node) if isinstance(node, Ref) else node_id(node)

    def put_fields(self, number: int, class_number: int, values: Sequence[Any]) -> None:
        """Sets what is held of a node; `values` are in the order of the columns of its class."""
        self.exists[number] = True
        if values:
            names = (key for key in self.columns if key[0] == class_number)
            for key, value in zip(names, values, strict=True):
                self.columns[key].put(number, value)

    def remove(self, number: int) -> None:
        self.exists[number] = False
        class_number = self._class_view[number]
        for key, column in self.columns.items():
            if key[0] == class_number:
                column.put(number, None)

    def packed(self) -> NodeTable:
        """The same nodes with packed arrays, to be written."""
        if not self._later:
            return self
        count = len(self)
        texts, classes, exists = self.texts.packed(), self.classes[:count], self.exists[:count]
        return NodeTable(self._layout, self.kinds, texts, classes, exists, self.columns)

    @property
    def nbytes(self) -> int:
        columns = sum(column.nbytes for column in self.columns.values())
        own = self.texts.nbytes + self.classes.nbytes + self.exists.nbytes + self.slots.nbytes
        return own + columns


class _Spelling:
    """How the ids of a class are written in node keys."""

    def __init__(self, layout: BoundLayout, kind: NodeType) -> None:
        self._layout, self._kind = layout, kind
        template = layout.key_templates(kind).text
        assert template is not None
        is_plain = template.is_tail and not template.parts[0].transform.name and template.type == "S"
        # Most ids are text that needs no escape, and follow a literal.
        self.lead = template.lead if is_plain and kind.has_bare_text_id else None
        self.special = template.quoting.special
        self._length = 0 if self.lead is None else len(self.lead.encode())

    def text(self, id: Any) -> bytes:
        if self.lead is not None and type(id) is str and id and self.special(id) is None:
            return (self.lead + id).encode()
        return self._layout.node_text(self._kind, id).encode()

    def id(self, text: bytes) -> Any:
        if self.lead is not None:
            id = text[self._length :].decode()
            if self.special(id) is None:
                return id
        return self._layout.id_in(self._kind, text.decode())
