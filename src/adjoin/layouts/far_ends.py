"""Reading only the id at the far end of an edge, from its keys, for walks that ask nothing else of edges.

No instance is made, and no field is validated. It is for classes of which each key is a literal and the id of an end,
whose validators leave ids as they are. An item with another key, such as one with an escaped id, is read as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoin.entity_types import NodeType
from adjoin.layouts.entity_keys import EdgeKeys
from adjoin.layouts.key_values import key_text
from adjoin.values import Item


def far_reader(
    keys: EdgeKeys, partition_key: str, sort_key: str, side: str, read: Callable[[Item], Any]
) -> Callable[[Item], Any] | None:
    """The function that reads the id of that side, "source" or "target"; None if it would have to validate the ids.

    `read` reads whole edges. What is returned is None for an item that is not an edge of the class.
    """
    source, target = keys.kind.source, keys.kind.target
    if not (_is_bare(source) and _is_bare(target)):
        return None
    # In a page, the near end is that of the item before, with few exceptions.
    ends = [(partition_key, keys.partition.lead, source), (sort_key, keys.sort.lead, target)]
    (near_key, near_lead, near), (far_key, far_lead, far) = ends if side == "target" else reversed(ends)
    near_length, far_length = len(near_lead), len(far_lead)
    special = keys.partition.quoting.special
    is_text = far.has_bare_text_id
    known: str | None = None

    def is_id(end: NodeType, text: str) -> bool:
        return bool(text) and not special(text) and (end.has_bare_text_id or _is_number(text))

    def read_far(item: Item) -> Any:
        nonlocal known
        near_text, text = item[near_key]["S"], item[far_key]["S"]
        id = text[far_length:]
        if near_text != known and near_text[:near_length] == near_lead and is_id(near, near_text[near_length:]):
            known = near_text
        if near_text == known and text[:far_length] == far_lead and id and not special(id):
            if is_text:
                return id
            if _is_number(id):
                return int(id)
        edge = read(item)
        return None if edge is None else getattr(edge, side)

    return read_far


def _is_bare(end: NodeType) -> bool:
    return end.has_bare_text_id or end.has_bare_number_id


def _is_number(text: str) -> bool:
    """Whether this is the text of a whole number in a key."""
    try:
        return key_text(int(text)) == text
    except ValueError:
        return False
