"""Divides a source by tenant in one pass, into one source per tenant.

A graph without a tenant rebuilds and verifies all tenants of its table. Keys show which tenants exist: a key of a
tenant is a key of a class after the tenant's prefix. The items of each tenant are kept in a temporary file, so that the
source is read once for all tenants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import ibis.expr.types as ir
from orjson import loads

from adjoin.batch.engines import Engine, Source
from adjoin.batch.keys import escaped, matches, node_template
from adjoin.batch.sources import Dump
from adjoin.dataclass import dataclass
from adjoin.layouts.bound import BoundLayout
from adjoin.reserved import OWN, is_tenant

_LINES = 1000
_OPEN_FILES = 64


@contextmanager
def tenant_slices(engine: Engine, source: Source, layout: BoundLayout) -> Iterator[Mapping[str, Dump]]:
    """The items of each tenant, in the order of their names. They exist as long as the block runs."""
    with TemporaryDirectory(prefix="adjoin-tenants-") as folder:
        files = _Files(Path(folder))
        try:
            for row in engine.fetch(engine.stage(_of_tenants(engine, source, layout))):
                tenant = row["w0"].removeprefix(layout.tenant_lead).partition("#")[0]
                if row["may_be_beside"] and layout.tenant_in(loads(row["w1"])) is None:
                    continue
                if is_tenant(tenant):
                    files.add(tenant, row["w1"])
        finally:
            files.close()
        yield {tenant: _dump(layout.table, path) for tenant, path in sorted(files.paths.items())}


def _of_tenants(engine: Engine, source: Source, layout: BoundLayout) -> ir.Table:
    rows = engine.rows(source, [(layout.definition.partition.name, "S"), ()])
    own = rows.w0
    # Patterns, because each names the key only once: substrings repeat what they are taken of, and the statement has
    # each of these texts for every template.
    prefix = rf"\A{escaped(layout.tenant_lead)}[^#]+#"
    rest = own.re_extract(rf"{prefix}((?s:.*))\z", 1)
    kinds = layout.schema.nodes.values()
    templates = [layout.key_templates(kind).partition for kind in kinds]
    # What is stored beside a node in a shared partition has its node key.
    templates += [node_template(layout, kind) for kind in kinds if layout.key_templates(kind).is_shared]

    def is_node(key: ir.StringValue) -> ir.BooleanValue:
        return reduce(or_, (matches(template, key) for template in templates))

    def is_beside(key: ir.StringValue) -> ir.BooleanValue:
        return key.endswith(OWN) & is_node(key.re_extract(rf"\A((?s:.*)){OWN}\z", 1))

    # A key can be both the node "=" of a tenant and an item beside a node without a tenant. Only the sort key
    # distinguishes them.
    kept = (rest.startswith(OWN) | is_beside(rest)) & ~is_beside(own)
    is_of_one = own.re_search(prefix) & ~is_node(own) & (is_node(rest) | kept)
    return rows.mutate(may_be_beside=is_beside(own)).filter(is_of_one.fill_null(False))


@dataclass
class _Files:
    """One file per tenant. Only a few are open at a time, because the system limits open files."""

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
