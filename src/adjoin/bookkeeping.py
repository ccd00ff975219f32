"""How adjoin's own items and attributes are told from nodes and edges, also by who knows no layout.

    PERSON#P1#=                a copy for an index, beside the item at PERSON#P1
    #=PERSON#email#a@b.c       the claim to a unique value; #=SHARDS holds the shards of indexed fields
    acme##=SHARDS              the same of the tenant acme

No key of a node or edge ends or begins like these, because the separator is never part of a value.
"""

from __future__ import annotations

import re

MARK = "="
OWN = "#" + MARK
"""What the partition key of a copy ends with, and that of every other such item begins with."""
ATTRIBUTE = "adjoin:"
"""What the names of adjoin's own attributes begin with."""

OWN_NAMES = frozenset(
    (
        *("o", "i", "s", "e", "t", "edge", "near", "far", "applied", "aside", "rules", "marked"),
        *("rank", "value", "by", "ledger", "beside", "based"),
        *("item", "reason", "rule", "account", "position", "at", "changes", "rate", "since", "why", "of"),
        *("current", "former"),
    )
)
"""Attributes of what is recorded about aggregates and copies that begin otherwise: most are short, because there is
such an item for each edge. No key and no time to live of a table may have one of these names."""

_OWN_PARTITION = re.compile(rf"(?:[^#]+#)?{OWN}|.*{OWN}\Z", re.DOTALL)


def is_own_partition(key: str) -> bool:
    """Whether only adjoin's own items have this partition key, of whatever tenant."""
    return _OWN_PARTITION.match(key) is not None
