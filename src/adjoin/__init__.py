"""Many-to-many for DynamoDB: typed nodes and edges in one table, in a file that behaves as the service does."""

from adjoin import beginning  # noqa: F401 being imported is all it does

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from adjoin.async_graph import AsyncGraph, AsyncTransaction
    from adjoin.batch.audit import Audit as Audit
    from adjoin.batch.audit import Finding as Finding
    from adjoin.batch.rebuild import Rebuilt as Rebuilt
    from adjoin.collecting import AsyncCollectionQuery, Collection, CollectionNodes, CollectionQuery
    from adjoin.cost import Counting, Explanation, FanOut, WalkCost, WholeTable
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
    from adjoin.fields import FieldReference, Predicate, RelativeChange, field
    from adjoin.graph import Graph, Transaction
    from adjoin.layouts.adjacency_list import AdjacencyList
    from adjoin.layouts.interface import Index, Keys
    from adjoin.layouts.materialized_graph import MaterializedGraph
    from adjoin.marks import Expires, Indexed, Stored, Unique, Version
    from adjoin.meters import CallSite, Meter
    from adjoin.model import Child, Edge, Node, Ranked, Ref
    from adjoin.plans.declared import DeclaredDifference
    from adjoin.plans.maintenance.health import Health
    from adjoin.plans.maintenance.report import MaintenanceReport, SetAside
    from adjoin.plans.maintenance.standing import RebuildDue
    from adjoin.plans.migrating.passes import MigrationReport
    from adjoin.plans.migrating.planning import MigrationPlan
    from adjoin.plans.steps.spending import Budget
    from adjoin.plans.subtree import Subtree
    from adjoin.plans.table import Change
    from adjoin.plans.walk_results import GroupCount, Reachable, Recommendation, WalkResult
    from adjoin.plans.walk_results import WalkPath as Path
    from adjoin.queries import (
        AsyncChildQuery,
        AsyncEdgeQuery,
        AsyncPairQuery,
        ChildQuery,
        EdgeQuery,
        Page,
        PairQuery,
    )
    from adjoin.scans import AsyncScanQuery, AsyncTableScanQuery, Contents, ScanQuery, TableScanQuery
    from adjoin.searches import (
        AsyncFindPairQuery,
        AsyncFindQuery,
        AsyncIndexQuery,
        FindPairQuery,
        FindQuery,
        IndexQuery,
    )
    from adjoin.server.serving import Server, serve
    from adjoin.snapshots.snapshot import AsyncSnapshot as AsyncSnapshot
    from adjoin.snapshots.snapshot import Snapshot as Snapshot
    from adjoin.tables import Projection, Throughput
    from adjoin.walk_steps import WalkPage
    from adjoin.walks import AsyncReached, AsyncWalk, Reached, Walk
    from adjoin.watching import RequestOutline, Watch, WatchedRound

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
    "CallSite",
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
    # name in annotations
    "AsyncChildQuery",
    "AsyncCollectionQuery",
    "AsyncEdgeQuery",
    "AsyncFindPairQuery",
    "AsyncFindQuery",
    "AsyncIndexQuery",
    "AsyncPairQuery",
    "AsyncScanQuery",
    "AsyncTableScanQuery",
    "AsyncTransaction",
    "ChildQuery",
    "CollectionQuery",
    "EdgeQuery",
    "FieldReference",
    "FindPairQuery",
    "FindQuery",
    "IndexQuery",
    "PairQuery",
    "Predicate",
    "RelativeChange",
    "ScanQuery",
    "TableScanQuery",
    "Transaction",
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

# A program waits only for the modules of the names that it takes. Names that need an extra are not in `__all__`, so
# that `from adjoin import *` works without it.
_MODULES = {
    "adjoin.aggregates": (
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
        "Sum",
        "Top",
    ),
    "adjoin.async_graph": (
        "AsyncGraph",
        "AsyncTransaction",
    ),
    "adjoin.batch.audit": (
        "Audit",
        "Finding",
    ),
    "adjoin.batch.rebuild": ("Rebuilt",),
    "adjoin.collecting": (
        "AsyncCollectionQuery",
        "Collection",
        "CollectionNodes",
        "CollectionQuery",
    ),
    "adjoin.cost": (
        "Counting",
        "Explanation",
        "FanOut",
        "WalkCost",
        "WholeTable",
    ),
    "adjoin.drawings": ("Drawing",),
    "adjoin.errors": (
        "AccessDenied",
        "AdjoinError",
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
        "EngineFailed",
        "FileBusy",
        "FileDamaged",
        "FileFromTheFuture",
        "FileGone",
        "FileNotWritable",
        "InvalidCopyState",
        "InvalidCredentials",
        "InvalidCursor",
        "InvalidExport",
        "InvalidItem",
        "InvalidKey",
        "InvalidLocation",
        "InvalidModel",
        "InvalidRequest",
        "InvalidSnapshot",
        "InvalidValue",
        "ItemTooLarge",
        "MigrationDue",
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
    ),
    "adjoin.fields": (
        "FieldReference",
        "Predicate",
        "RelativeChange",
        "field",
    ),
    "adjoin.graph": (
        "Graph",
        "Transaction",
    ),
    "adjoin.layouts.adjacency_list": ("AdjacencyList",),
    "adjoin.layouts.interface": (
        "Index",
        "Keys",
    ),
    "adjoin.layouts.materialized_graph": ("MaterializedGraph",),
    "adjoin.marks": (
        "Expires",
        "Indexed",
        "Stored",
        "Unique",
        "Version",
    ),
    "adjoin.meters": (
        "CallSite",
        "Meter",
    ),
    "adjoin.model": (
        "Child",
        "Edge",
        "Node",
        "Ranked",
        "Ref",
    ),
    "adjoin.plans.declared": ("DeclaredDifference",),
    "adjoin.plans.maintenance.health": ("Health",),
    "adjoin.plans.maintenance.standing": ("RebuildDue",),
    "adjoin.plans.maintenance.report": (
        "MaintenanceReport",
        "SetAside",
    ),
    "adjoin.plans.migrating.passes": ("MigrationReport",),
    "adjoin.plans.migrating.planning": ("MigrationPlan",),
    "adjoin.plans.steps.spending": ("Budget",),
    "adjoin.plans.subtree": ("Subtree",),
    "adjoin.plans.table": ("Change",),
    "adjoin.plans.walk_results": (
        "GroupCount",
        "Reachable",
        "Recommendation",
        "WalkResult",
        "Path",
    ),
    "adjoin.queries": (
        "AsyncChildQuery",
        "AsyncEdgeQuery",
        "AsyncPairQuery",
        "ChildQuery",
        "EdgeQuery",
        "Page",
        "PairQuery",
    ),
    "adjoin.scans": (
        "AsyncScanQuery",
        "AsyncTableScanQuery",
        "Contents",
        "ScanQuery",
        "TableScanQuery",
    ),
    "adjoin.searches": (
        "AsyncFindPairQuery",
        "AsyncFindQuery",
        "AsyncIndexQuery",
        "FindPairQuery",
        "FindQuery",
        "IndexQuery",
    ),
    "adjoin.server.serving": (
        "Server",
        "serve",
    ),
    "adjoin.snapshots.snapshot": (
        "AsyncSnapshot",
        "Snapshot",
    ),
    "adjoin.tables": (
        "Projection",
        "Throughput",
    ),
    "adjoin.walk_steps": ("WalkPage",),
    "adjoin.walks": (
        "AsyncReached",
        "AsyncWalk",
        "Reached",
        "Walk",
    ),
    "adjoin.watching": (
        "RequestOutline",
        "Watch",
        "WatchedRound",
    ),
}
_OTHERWISE_NAMED = {"Path": "WalkPath"}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULE_OF[name]), _OTHERWISE_NAMED.get(name, name))
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
