"""DynamoDB's arithmetic: limits, and the units a size costs. Pure numbers, nothing else.

Sizes are bytes. Read units are counted in 4 KB, write units in 1 KB (1 KB = 1024 B); an eventually
consistent read costs half, a transactional read or write double.
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
MAX_PROJECTED_ATTRIBUTES = 100
MAX_TAGS = 50
MAX_TAG_KEY = 128
MAX_TAG_VALUE = 256
MAX_NESTING = 32
MAX_IN_OPERANDS = 100
MAX_EXPRESSION_SIZE = 4 * KB
MAX_OPERATORS = 300
"""Operators and functions of one expression."""
MAX_PLACEHOLDER_SIZE = 255
MAX_LIST_INDEX = 2**31 - 1
MAX_CHANGES = 1000
MAX_TOKEN = 36
TOKEN_LIFETIME = 600
"""Seconds for which a transaction's client token is remembered."""


def read_units(size: int, *, consistent: bool = False, transactional: bool = False) -> float:
    """Units of reading `size` bytes in one piece; reading nothing costs as much as reading 4 KB."""
    blocks = -(-size // 4096) or 1
    if transactional:
        return blocks * 2.0
    return float(blocks) if consistent else blocks / 2


def write_units(size: int, *, transactional: bool = False) -> float:
    """Units of writing `size` bytes in one piece."""
    blocks = -(-size // 1024) or 1
    return blocks * 2.0 if transactional else float(blocks)
