"""Many-to-many for DynamoDB: typed nodes and edges in one table, in a file that behaves as the service does."""

from adjoin.cost import Explanation, Meter
from adjoin.errors import (
    AdjoinError,
    AlreadyExists,
    BudgetExceeded,
    CancellationReason,
    ChangesTrimmed,
    ConditionFailed,
    FileBusy,
    FileDamaged,
    FileFromTheFuture,
    FileNotWritable,
    InvalidCursor,
    InvalidItem,
    InvalidKey,
    InvalidLocation,
    InvalidModel,
    InvalidRequest,
    InvalidValue,
    ItemTooLarge,
    NotAnAdjoinFile,
    NotFound,
    StoreClosed,
    TableExists,
    TableMismatch,
    TableNotFound,
    Throttled,
    TokenReused,
    TransactionCanceled,
    UnknownField,
)
from adjoin.fields import field
from adjoin.graph import AsyncGraph, Graph
from adjoin.layouts.adjacency_list import AdjacencyList
from adjoin.layouts.interface import Index, Keys
from adjoin.model import Edge, Expires, Node, Ref, Version
from adjoin.plans.changes import Change
from adjoin.queries import Collection, Page
from adjoin.tables import Projection, Throughput

__version__ = "0.1.0"

__all__ = [
    # declare
    "Edge",
    "Expires",
    "Node",
    "Ref",
    "Version",
    # lay out
    "AdjacencyList",
    "Index",
    "Keys",
    "Projection",
    "Throughput",
    # use
    "AsyncGraph",
    "Change",
    "Collection",
    "Explanation",
    "Graph",
    "Meter",
    "Page",
    "field",
    # errors
    "AdjoinError",
    "AlreadyExists",
    "BudgetExceeded",
    "CancellationReason",
    "ChangesTrimmed",
    "ConditionFailed",
    "FileBusy",
    "FileDamaged",
    "FileFromTheFuture",
    "FileNotWritable",
    "InvalidCursor",
    "InvalidItem",
    "InvalidKey",
    "InvalidLocation",
    "InvalidModel",
    "InvalidRequest",
    "InvalidValue",
    "ItemTooLarge",
    "NotAnAdjoinFile",
    "NotFound",
    "StoreClosed",
    "TableExists",
    "TableMismatch",
    "TableNotFound",
    "Throttled",
    "TokenReused",
    "TransactionCanceled",
    "UnknownField",
]  # fmt: skip
