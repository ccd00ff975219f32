"""Which tests are a folder's own: those that are run against its mutants.

Tests of whole programs and tests that start other processes are none of them: they are slow, and what they notice
should be noticed nearer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "adjoin"


@dataclass(frozen=True)
class Folder:
    """Source files, and the paths of their tests, the nearest first."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def modules(self) -> list[Path]:
        found = [path for source in self.sources for path in sorted(PACKAGE.glob(source))]
        return [path for path in found if path.name != "__init__.py"]


_READS = (
    "tests/test_queries.py", "tests/test_shared_partitions.py", "tests/finding/test_find.py",
    "tests/finding/test_declared_indexes.py", "tests/finding/test_declared_predicates.py",
    "tests/finding/test_requests.py", "tests/plans/test_pages.py",
    "tests/test_graph.py", "tests/test_sharp_corners.py", "tests/test_notebooks.py", "tests/test_scans.py",
    "tests/test_scan_pages.py",
    "tests/test_children.py",
    "tests/layouts/test_targets.py", "tests/test_sharded_graph.py", "tests/plans/test_predicates.py",
    "tests/finding/test_branches.py",
    "tests/finding/test_own_indexes.py", "tests/finding/test_counts_and_consistency.py",
    "tests/finding/test_compound_orders.py", "tests/finding/test_shard_fields.py", "tests/finding/test_copied_keys.py",
)  # fmt: skip
_KEYS = (
    "tests/layouts", "tests/test_schema.py", "tests/test_patterns.py", "tests/test_layouts_agree.py",
    "tests/test_tenants.py", "tests/test_unique.py", "tests/test_versions.py",
    "tests/test_index_updates.py", "tests/test_hostile_arguments.py", "tests/test_failed_updates.py",
    "tests/maintenance/test_tenants.py", "tests/maintenance/test_by_hand.py", "tests/examples/test_education.py",
    "tests/examples/test_homes.py", "tests/examples/test_invoices.py", "tests/examples/test_people.py",
    "tests/test_declarations.py", "tests/maintenance/test_declarations.py", "tests/designs/test_published_graph.py",
    "tests/designs/test_edges_of_their_own.py", "tests/designs/test_typed_keys.py", "tests/designs/test_typed_edges.py",
    "tests/designs/test_formats.py",
    "tests/designs/test_time_series.py", "tests/designs/test_partitions_of_lists.py", "tests/test_unexplained.py",
    "tests/test_families.py", "tests/test_union_ends.py", "tests/test_union_refs.py", "tests/test_composite_ids.py",
    "tests/verbs/test_cardinality.py", "tests/verbs/test_computed.py",
)  # fmt: skip
_WRITES = (
    "tests/plans", "tests/verbs", "tests/test_transactions.py", "tests/test_explain.py", "tests/copying/test_copy.py",
    "tests/copying/test_refused_copies.py",
    "tests/maintenance/test_at_once.py", "tests/maintenance/test_copies.py", "tests/batch/test_audit.py",
    "tests/migrating/test_undeclared.py", "tests/migrating/test_migrate.py", "tests/migrating/test_orders.py",
    "tests/migrating/test_dry_runs.py",
)  # fmt: skip
_COUNTS = ("tests/maintenance", "tests/test_tenants.py", "tests/test_explain.py")

FOLDERS = {
    "queries": Folder(("queries.py", "scans.py", "searches.py"), _READS),
    "layouts": Folder(("layouts/*.py",), (*_KEYS, *_READS)),
    "plans": Folder(("plans/*.py", "plans/steps/*.py"), (*_WRITES, *_KEYS, *_READS, "tests/walks")),
    "walks": Folder(
        (
            "plans/frontier.py",
            "plans/routing.py",
            "plans/walk.py",
            "plans/walk_results.py",
            "plans/paths.py",
            "plans/recommend.py",
            "plans/subtree.py",
            "plans/steps/spending.py",
            "walk_steps.py",
            "walks.py",
            "traversals.py",
        ),
        ("tests/walks",),
    ),
    "snapshots": Folder(("snapshots/*.py",), ("tests/snapshots",)),
    "maintenance": Folder(("plans/counting/*.py", "plans/maintenance/*.py"), _COUNTS),
    "short": Folder(
        (
            "server/operations/items.py",
            "server/operations/batches.py",
            "server/reading.py",
            "server/service.py",
            "items.py",
        ),
        ("tests/server", "tests/stores/test_properties.py", "tests/test_patterns.py", "tests/test_values.py"),
    ),
}
"""By the name that the command takes. `short`: the server's fast paths, and the sizes that they compute."""

LEFT_OUT = ("tests/server/clients", "tests/maintenance/test_ministack.py", "tests/copying/test_dynamodb.py")
"""Tests against programs of others."""
