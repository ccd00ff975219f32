"""All operations of the server by name. Everything about an operation is in one place (`interface.Operation`).

Streams are a separate service, as on AWS.
"""

from adjoin.server.operations.absent import ABSENT_OPERATIONS
from adjoin.server.operations.batches import BATCH_OPERATIONS
from adjoin.server.operations.interface import Operation
from adjoin.server.operations.items import ITEM_OPERATIONS
from adjoin.server.operations.reads import READ_OPERATIONS
from adjoin.server.operations.streams import STREAM_OPERATIONS as _STREAM_OPERATIONS
from adjoin.server.operations.table_settings import SETTING_OPERATIONS
from adjoin.server.operations.table_updates import UPDATE_TABLE
from adjoin.server.operations.tables import TABLE_OPERATIONS
from adjoin.server.operations.transactions import TRANSACTION_OPERATIONS

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        *ITEM_OPERATIONS,
        *READ_OPERATIONS,
        *BATCH_OPERATIONS,
        *TRANSACTION_OPERATIONS,
        *TABLE_OPERATIONS,
        UPDATE_TABLE,
        *SETTING_OPERATIONS,
        *ABSENT_OPERATIONS,
    )
}
STREAM_OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _STREAM_OPERATIONS}

__all__ = ["OPERATIONS", "STREAM_OPERATIONS", "Operation"]
