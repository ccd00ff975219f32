"""Keys and names that adjoin reserves: its own items and attributes, and the prefixes of tenants.

The keys of adjoin's own items differ from those of nodes and edges, so that no layout is needed to recognize them:

    PERSON#P1#=                an index copy of the item at PERSON#P1
    #=PERSON#email#a@b.c       the claim to a unique value; #=SHARDS holds the shard maps of indexed fields
    acme##=SHARDS              the same for the tenant acme
    #=RECORDS                  what holds for the whole table and all its tenants, such as numbers of shards

No key of a node or edge ends or begins like these, because keys escape the separator in values.

Every key of a tenant, in the table and in its indexes, begins with the prefix of the tenant. No prefix is the
beginning of another one, so permissions for the keys of one tenant never include those of another.
"""

from __future__ import annotations

import re

from adjoin.errors import InvalidKey, shown

MARK = "="
OWN = "#" + MARK
"""The partition key of an index copy ends with this; that of every other own item begins with it."""
RECORDS = "RECORDS"
"""Ends the partition key of the records about the whole table. A tenant may read them, so they hold no values."""
ATTRIBUTE = "adjoin:"
"""The prefix of adjoin's own attributes."""
DECLARED = ATTRIBUTE + "declared"
"""The attribute of the record of what classes declare."""

OWN_NAMES = frozenset(
    (
        *("o", "i", "s", "e", "t", "edge", "near", "far", "applied", "aside", "rules", "marked"),
        *("rank", "value", "by", "ledger", "beside", "based"),
        *("item", "reason", "rule", "account", "position", "at", "changes", "rate", "since", "why", "of"),
        *("current", "former"),
    )
)
"""Own attributes without that prefix, on the items for aggregates and copied fields. Most are short, because each edge
has such an item. No key and no time-to-live attribute of a table may have one of these names."""

_OWN_PARTITION = re.compile(rf"(?:[^#]+#)?{OWN}|.*{OWN}\Z", re.DOTALL)


def is_own_partition(key: str) -> bool:
    """Whether this is the partition key of adjoin's own items, for any tenant."""
    return _OWN_PARTITION.match(key) is not None


# --- tenants -----------------------------------------------------------------------------------


_END = "#"


def is_tenant(name: object) -> bool:
    """Whether this can be the name of a tenant."""
    return isinstance(name, str) and bool(name) and _END not in name and name.isprintable()


def tenant_prefix(tenant: str) -> str:
    """Returns the prefix of a tenant's keys: "acme#" for "acme"."""
    if not is_tenant(tenant):
        raise InvalidKey(f"{shown(tenant)} cannot name a tenant; use printable text without {_END!r}")
    return tenant + _END
