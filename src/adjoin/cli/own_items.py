"""What adjoin keeps for itself in a table, which is drawn only where it is asked for."""

from __future__ import annotations

from adjoin.bookkeeping import ATTRIBUTE, is_own_partition
from adjoin.values import AttributeValue, Item


def is_own(partition: AttributeValue) -> bool:
    """Whether an item with this partition key is no node or edge, but adjoin's own."""
    return "S" in partition and is_own_partition(partition["S"])


def without_own_attributes(item: Item) -> Item:
    """An item without the attributes that adjoin keeps for itself."""
    return {name: value for name, value in item.items() if not name.startswith(ATTRIBUTE)}
