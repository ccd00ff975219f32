"""Many-to-many for DynamoDB: typed nodes and edges in one table, in a file that behaves as the service does."""

from adjoin import beginning  # noqa: F401 being imported is all it does

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

from adjoin.aggregates import (
    Avg,
    CommonNeighbours,
    Components,
    Copy,
    Count,
    Immutable,
    Latest,
    Max,
    Min,
    PageRank,
    Sum,
    Top,
)
from adjoin.async_graph import AsyncGraph
from adjoin.collecting import Collection, CollectionNodes
from adjoin.cost import Counting, Explanation, FanOut, Meter, WalkCost, WholeTable
from adjoin.drawings import Drawing
from adjoin.errors import (
    AccessDenied,
    AdjoinError,
    AlreadyExists,
    BudgetExceeded,
    CancellationReason,
    ChangesTrimmed,
    CollectionTooLarge,
    ConditionFailed,
    CopyDiffers,
    CycleFound,
    CyclicRule,
    DeclarationReplaced,
    EngineFailed,
    FileBusy,
    FileDamaged,
    FileFromTheFuture,
    FileGone,
    FileNotWritable,
    InvalidCopyState,
    InvalidCredentials,
    InvalidCursor,
    InvalidExport,
    InvalidItem,
    InvalidKey,
    InvalidLocation,
    InvalidModel,
    InvalidRequest,
    InvalidSnapshot,
    InvalidValue,
    ItemTooLarge,
    MigrationDue,
    MissingExtra,
    NotAnAdjoinFile,
    NotFound,
    NotInSnapshot,
    NotRead,
    NotSupported,
    OutcomeUnknown,
    ServiceFailed,
    ServiceUnreachable,
    StoreClosed,
    TableBusy,
    TableExists,
    TableMismatch,
    TableNotEmpty,
    TableNotFound,
    Throttled,
    TokenReused,
    TransactionCanceled,
    TransactionConflict,
    UnknownField,
)
from adjoin.fields import field
from adjoin.graph import Graph
from adjoin.layouts.adjacency_list import AdjacencyList
from adjoin.layouts.interface import Index, Keys
from adjoin.layouts.materialized_graph import MaterializedGraph
from adjoin.model import Child, Edge, Expires, Indexed, Node, Ranked, Ref, Stored, Unique, Version
from adjoin.plans.declared import DeclaredDifference
from adjoin.plans.maintenance.health import Health
from adjoin.plans.maintenance.progress import RebuildDue
from adjoin.plans.maintenance.report import MaintenanceReport, SetAside
from adjoin.plans.migrating.passes import MigrationReport
from adjoin.plans.migrating.planning import MigrationPlan
from adjoin.plans.steps.spending import Budget
from adjoin.plans.subtree import Subtree
from adjoin.plans.table import Change
from adjoin.plans.walk_results import GroupCount, Reachable, Recommendation, WalkResult
from adjoin.plans.walk_results import WalkPath as Path
from adjoin.queries import Page
from adjoin.scans import Contents
from adjoin.tables import Projection, Throughput
from adjoin.walk_steps import WalkPage
from adjoin.walks import AsyncReached, AsyncWalk, Reached, Walk
from adjoin.watching import RequestOutline, Watch, WatchedRound

if TYPE_CHECKING:
    from adjoin.server.serving import Server, serve
    from adjoin.snapshots.snapshot import AsyncSnapshot, Snapshot

__version__ = "0.1.0"

__all__ = [
    # declare
    "Child",
    "Edge",
    "Expires",
    "Indexed",
    "Node",
    "Ref",
    "Unique",
    "Version",
    # keep true
    "Avg",
    "CommonNeighbours",
    "Components",
    "Copy",
    "Count",
    "Immutable",
    "Latest",
    "Max",
    "Min",
    "PageRank",
    "Ranked",
    "Stored",
    "Sum",
    "Top",
    # lay out
    "AdjacencyList",
    "Index",
    "Keys",
    "MaterializedGraph",
    "Projection",
    "Throughput",
    # use
    "AsyncGraph",
    "Change",
    "Collection",
    "CollectionNodes",
    "Contents",
    "Drawing",
    "Explanation",
    "FanOut",
    "Counting",
    "Graph",
    "MaintenanceReport",
    "MigrationDue",
    "MigrationPlan",
    "MigrationReport",
    "Health",
    "RebuildDue",
    "Meter",
    "Page",
    "RequestOutline",
    "SetAside",
    "Watch",
    "WatchedRound",
    "WholeTable",
    "field",
    # follow
    "AsyncReached",
    "AsyncWalk",
    "Budget",
    "GroupCount",
    "Path",
    "Reachable",
    "Reached",
    "Recommendation",
    "Subtree",
    "Walk",
    "WalkCost",
    "WalkPage",
    "WalkResult",
    # hold
    "AsyncSnapshot",
    "Snapshot",
    # serve
    "Server",
    "serve",
    # errors
    "AdjoinError",
    "AccessDenied",
    "AlreadyExists",
    "BudgetExceeded",
    "CancellationReason",
    "ChangesTrimmed",
    "CollectionTooLarge",
    "ConditionFailed",
    "CopyDiffers",
    "CycleFound",
    "CyclicRule",
    "DeclarationReplaced",
    "DeclaredDifference",
    "InvalidExport",
    "EngineFailed",
    "FileBusy",
    "FileDamaged",
    "FileFromTheFuture",
    "FileGone",
    "FileNotWritable",
    "InvalidCopyState",
    "InvalidCredentials",
    "InvalidCursor",
    "InvalidItem",
    "InvalidKey",
    "InvalidLocation",
    "InvalidModel",
    "InvalidRequest",
    "InvalidSnapshot",
    "InvalidValue",
    "ItemTooLarge",
    "MissingExtra",
    "NotAnAdjoinFile",
    "NotFound",
    "NotInSnapshot",
    "NotRead",
    "NotSupported",
    "OutcomeUnknown",
    "ServiceFailed",
    "ServiceUnreachable",
    "StoreClosed",
    "TableBusy",
    "TableExists",
    "TableMismatch",
    "TableNotEmpty",
    "TableNotFound",
    "Throttled",
    "TokenReused",
    "TransactionCanceled",
    "TransactionConflict",
    "UnknownField",
]  # fmt: skip

# A graph needs nothing of the server, whose grammar and rules take a while to import, and nothing of snapshots, which
# need an extra.
_IMPORTED_ON_USE = {
    "AsyncSnapshot": "adjoin.snapshots.snapshot",
    "Server": "adjoin.server.serving",
    "Snapshot": "adjoin.snapshots.snapshot",
    "serve": "adjoin.server.serving",
}


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED_ON_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_IMPORTED_ON_USE[name]), name)
    return found
