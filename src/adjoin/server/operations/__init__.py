"""What each operation does, by its name: parameters to requests, and responses to answers.

Streams are a service of their own.
"""

from adjoin.server.operations.absent import ABSENT_OPERATIONS
from adjoin.server.operations.batches import BATCH_OPERATIONS
from adjoin.server.operations.interface import Operation
from adjoin.server.operations.items import ITEM_OPERATIONS
from adjoin.server.operations.pages import PAGE_OPERATIONS
from adjoin.server.operations.streams import STREAM_OPERATIONS
from adjoin.server.operations.tables import TABLE_OPERATIONS

OPERATIONS: dict[str, Operation] = {
    **ITEM_OPERATIONS,
    **PAGE_OPERATIONS,
    **BATCH_OPERATIONS,
    **TABLE_OPERATIONS,
    **ABSENT_OPERATIONS,
}

__all__ = ["OPERATIONS", "STREAM_OPERATIONS"]
