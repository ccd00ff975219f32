"""The tenants of a table, and what is theirs in a source: each a source of its own, read from it in one pass.

A graph without a tenant rebuilds and verifies all tenants of its table. Which there are is told by keys: one of a
tenant is one of a class behind the tenant's prefix. What is read of a tenant is kept in a file until it is not needed
any more, so that however many tenants there are, the source is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import ibis.expr.types as ir

from adjoin.batch.engines import Engine, Source
from adjoin.batch.keys import matches
from adjoin.batch.sources import Dump
from adjoin.layouts.interface import BoundLayout
from adjoin.tenants import is_tenant

BESIDE = "#="
"""What the partition keys of adjoin's own items end with, beside a node, or begin with."""
_LINES = 1000
_OPEN_FILES = 64


@contextmanager
def tenant_slices(engine: Engine, source: Source, layout: BoundLayout) -> Iterator[Mapping[str, Dump]]:
    """What each tenant has in a source, in the order of their names; it is there as long as the block runs."""
    with TemporaryDirectory(prefix="adjoin-tenants-") as folder:
        files = _Files(Path(folder))
        try:
            for row in engine.fetch(engine.stage(_of_tenants(engine, source, layout))):
                tenant = row["w0"].partition("#")[0]
                if is_tenant(tenant):
                    files.add(tenant, row["w1"])
        finally:
            files.close()
        yield {tenant: _dump(layout.table, path) for tenant, path in sorted(files.paths.items())}


def _of_tenants(engine: Engine, source: Source, layout: BoundLayout) -> ir.Table:
    rows = engine.rows(source, [(layout.definition.partition.name, "S"), ()])
    own = rows.w0
    rest = own.substr(own.find("#") + 1)
    templates = [layout.key_templates(kind).partition for kind in layout.schema.nodes.values()]

    def is_node(key: ir.StringValue) -> ir.BooleanValue:
        return reduce(or_, (matches(template, key) for template in templates))

    def is_beside(key: ir.StringValue) -> ir.BooleanValue:
        return key.endswith(BESIDE) & is_node(key.substr(0, key.length() - len(BESIDE)))

    # Where a key is both the node "=" of a tenant and beside a node of none, sort keys tell, and each has a look.
    kept = (rest.startswith(BESIDE) | is_beside(rest)) & ~is_beside(own)
    is_of_one = ~own.startswith("#") & own.contains("#") & ~is_node(own) & (is_node(rest) | kept)
    return rows.filter(is_of_one.fill_null(False))


@dataclass
class _Files:
    """A file for each tenant, few of them open at a time."""

    folder: Path

    def __post_init__(self) -> None:
        self.paths: dict[str, Path] = {}
        self._open: dict[str, BinaryIO] = {}

    def add(self, tenant: str, line: str) -> None:
        file = self._open.pop(tenant, None)
        if file is None:
            path = self.paths.setdefault(tenant, self.folder / f"{len(self.paths):08}.json")
            file = path.open("ab")
            if len(self._open) == _OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
        self._open[tenant] = file
        file.write(line.encode() + b"\n")

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def _dump(table: str, path: Path) -> Dump:
    @contextmanager
    def opened() -> Iterator[Iterator[list[bytes]]]:
        with path.open("rb") as file:
            yield iter(lambda: [line.rstrip(b"\n") for line in islice(file, _LINES)], [])

    return Dump(table, opened)
