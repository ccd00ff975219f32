"""DynamoDB's limits, and the capacity units that reads and writes cost.

Sizes are in bytes. A read unit covers 4 KB, a write unit 1 KB (1 KB = 1024 bytes). An eventually
consistent read costs half a unit per 4 KB; a transactional read or write costs double.
"""

from __future__ import annotations

KB = 1024
MB = 1024 * KB

MAX_ITEM_SIZE = 400 * KB
MAX_NAME_SIZE = 64 * KB - 1
MAX_PARTITION_KEY_SIZE = 2048
MAX_SORT_KEY_SIZE = 1024
MAX_PAGE_SIZE = MB
MAX_BATCH_GET = 100
MAX_BATCH_WRITE = 25
MAX_BATCH_SIZE = 16 * MB
MAX_TRANSACTION = 100
MAX_TRANSACTION_SIZE = 4 * MB
MAX_GLOBAL_INDEXES = 20
MAX_LOCAL_INDEXES = 5
MAX_KEY_ATTRIBUTES = 4
"""The greatest number of attributes in the partition key of a global index, and in its sort key."""
MAX_PROJECTED_ATTRIBUTES = 100
MAX_TAGS = 50
MAX_TAG_KEY = 128
MAX_TAG_VALUE = 256
MAX_NESTING = 32
MAX_IN_OPERANDS = 100
MAX_EXPRESSION_SIZE = 4 * KB
MAX_OPERATORS = 300
"""The greatest number of operators and functions in one expression."""
MAX_PLACEHOLDER_SIZE = 255
MAX_LIST_INDEX = 2**31 - 1
MAX_CHANGES = 1000
CHANGES_KEPT = 23 * 3600.0
"""Seconds for which a stream surely keeps changes. DynamoDB keeps them for 24 hours, and clocks may differ."""
MAX_TOKEN = 36
TOKEN_LIFETIME = 600
"""Seconds for which DynamoDB remembers the client token of a transaction."""


def read_units(size: int, *, consistent: bool = False, transactional: bool = False) -> float:
    """Returns the units for reading `size` bytes at once; reading nothing costs as much as 4 KB."""
    blocks = -(-size // 4096) or 1
    if transactional:
        return blocks * 2.0
    return float(blocks) if consistent else blocks / 2


def write_units(size: int, *, transactional: bool = False) -> float:
    """Returns the units for writing `size` bytes at once; writing nothing costs as much as 1 KB."""
    blocks = -(-size // 1024) or 1
    return blocks * 2.0 if transactional else float(blocks)
