"""`rebuild` and `verify` as `Graph` and `AsyncGraph` call them: the tenants, the source of items, and the runner.

A graph without a tenant runs both for itself and for all tenants of its table, and returns one result for all. A call
that ran to its end is recorded in the table, so that a rebuild for changes missed before it is no longer due (see
`plans.maintenance.standing`). Engines are imported only when a call needs them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from adjoin.batch import RunPlan, TellProgress, needed
from adjoin.batch.sources import SCAN, Dump, dump_of, index_delay, scan_of
from adjoin.dataclass import dataclass
from adjoin.errors import InvalidValue, shown
from adjoin.layouts.bound import BoundLayout
from adjoin.plans.maintenance.standing import (
    REBUILT,
    VERIFIED,
    Begun,
    begin,
    end,
    end_rebuild,
    keep,
    read_standing,
    recounted,
    take_up,
)
from adjoin.plans.shards import read_shard_maps
from adjoin.rules import Rules

if TYPE_CHECKING:
    from adjoin.batch.audit import Audit
    from adjoin.batch.rebuild import Rebuilt

PathName: TypeAlias = str | os.PathLike[str]

_KEPT = ("declaration", "aggregate", "ledger", "rank", "copy")
"""The kinds of findings that missed changes cause. All must be repaired before a rebuild is no longer due."""


@dataclass(frozen=True, slots=True)
class Over:
    """The arguments of one call: the graph, the runner of its plans, the source, and the engine that reads it."""

    layout: BoundLayout
    store: Any
    run: RunPlan
    source: PathName | None
    engine: Any
    options: Mapping[str, Any]
    progress: TellProgress | None
    clock: Callable[[], float] = time.time

    def told(self, tenant: str | None) -> TellProgress | None:
        """The progress callback for the work on a tenant; it puts the tenant before the name of the work."""
        tell = self.progress
        return tell if tell is None or tenant is None else lambda name, done: tell(f"{tenant} {name}", done)


@dataclass(frozen=True, slots=True)
class _TenantPart:
    """The graph of one tenant, or the graph of the call, with its source and engine."""

    layout: BoundLayout
    source: Any
    engine: Any
    options: Mapping[str, Any]
    tenant: str | None = None
    """The tenant, if the graph of the call has none; otherwise None."""


class _Upkeep:
    """Records in the table when the parts of a call begin and end."""

    def __init__(self, over: Over, name: str, is_recorded: bool) -> None:
        self._over, self._name, self._is_recorded = over, name, is_recorded
        self._whole: Begun | None = None
        self._read_at: float | None = None
        self._are_done = True
        self.missed = False
        """Whether changes of all tenants were missed: a maintainer of the whole table missed those of each tenant."""

    def begin(self, part: _TenantPart) -> Begun | None:
        if not self._is_recorded:
            return None
        begun: Begun = self._over.run(begin(part.layout, self._over.clock()))
        if part.tenant is None:
            self._whole, self._read_at = begun, getattr(part.source, "at", None)
            self.missed = begun.due is not None
        return begun

    def end(self, part: _TenantPart, begun: Begun | None, is_done: bool) -> None:
        self._are_done &= is_done
        if begun is not None and is_done and part.tenant is not None:
            self._over.run(end(part.layout, begun, self._name, self._read_at))

    def finish(self) -> None:
        """Records the whole call, if every part is done."""
        if self._whole is not None and self._are_done:
            self._over.run(end(self._over.layout, self._whole, self._name, self._read_at))


def rebuilt(
    over: Over, only: Iterable[str] | None, dry_run: bool, state: PathName | None, diff: PathName | None
) -> Rebuilt:
    _check_places(state, diff)
    names = None if only is None else _names(only)
    upkeep = _Upkeep(over, REBUILT, is_recorded=names is None and not dry_run)
    results: dict[str | None, Rebuilt] = {}
    if not dry_run:
        # Record the declarations before anything is read: a maintainer then applies later changes by these rules.
        over.run(take_up(over.layout, over.clock))
    with _parts(over) as parts:
        for part in parts:
            begun = upkeep.begin(part)
            taken = None if dry_run else over.run(take_up(part.layout, over.clock))
            result: Rebuilt = needed("rebuild").rebuild(
                part.layout,
                part.layout.rules,
                part.source,
                part.engine,
                run=None if dry_run else over.run,
                only=names,
                recounted=recounted(part.layout, taken) if names is None else {},
                state=state if part.tenant is None else None,
                diff=diff,
                tenant=part.tenant,
                delay=index_delay(over.store),
                progress=over.told(part.tenant),
                **part.options,
            )
            results[part.tenant] = result
            if names is None and not dry_run and not result.left:
                over.run(end_rebuild(part.layout, taken, getattr(part.source, "at", None)))
            is_missing = begun is not None and (upkeep.missed or begun.due is not None)
            upkeep.end(part, begun, not result.left and (not is_missing or _copied(over, part)))
    upkeep.finish()
    return results.pop(None).together({tenant: each for tenant, each in results.items() if tenant is not None})


def _copied(over: Over, part: _TenantPart) -> bool:
    """Repairs copied fields too, which no aggregate shows; returns whether all are repaired."""
    copies = part.layout.rules.copies
    return not copies or _is_kept(_audited(over, part, Rules(part.layout.schema, (), copies, ()), ("copy",)))


def verified(over: Over, repair: bool | Iterable[str | bool], report: PathName | None) -> Audit:
    _check_places(report)
    kinds = needed("audit").repairs(repair)
    # An audit without repair must not need permission to write. A table that cannot hold records has no rules, so
    # nothing has to be recorded about them.
    is_recorded = bool(kinds) and over.layout.why_no_own_items is None
    upkeep = _Upkeep(over, VERIFIED, is_recorded=is_recorded)
    audits: dict[str | None, Audit] = {}
    with _parts(over) as parts:
        for part in parts:
            # A repair maintains the declared rules, so it registers them as a maintainer does.
            over.run(keep(part.layout, over.clock) if is_recorded else read_standing(part.layout))
            begun = upkeep.begin(part)
            audits[part.tenant] = _audited(over, part, part.layout.rules, kinds)
            upkeep.end(part, begun, _is_kept(audits[part.tenant]))
    upkeep.finish()
    audit = audits.pop(None).together({tenant: each for tenant, each in audits.items() if tenant is not None})
    if report is not None:
        audit.save(report)
    return audit


def _audited(over: Over, part: _TenantPart, rules: Rules, kinds: tuple[str, ...]) -> Audit:
    audit: Audit = needed("audit").verify(
        part.layout,
        rules,
        part.source,
        part.engine,
        run=over.run,
        repair=kinds,
        delay=index_delay(over.store),
        progress=over.told(part.tenant),
        **part.options,
    )
    return audit


def _is_kept(audit: Audit) -> bool:
    return all(each.count == each.repaired for each in audit.findings if each.kind in _KEPT)


@contextmanager
def _parts(over: Over) -> Iterator[Iterator[_TenantPart]]:
    """The parts of a call: first its own graph, then the tenants of the table."""
    engines = needed("engines")
    opened = engines.open_engine(over.engine, **over.options)
    try:
        read = engines.opened_source(_source(over), opened, over.layout.table)
        own = _TenantPart(over.layout, read, opened, {})
        if over.layout.tenant is not None:
            yield iter([own])
            return
        with engines.readable(read, opened), needed("slices").tenant_slices(opened, read, over.layout) as slices:
            yield chain([own], _tenants(over, slices))
    finally:
        if opened is not over.engine:
            opened.close()


def _tenants(over: Over, slices: Mapping[str, Dump]) -> Iterator[_TenantPart]:
    for tenant, source in slices.items():
        layout = over.layout.for_tenant(tenant)
        over.run(read_shard_maps(layout))
        over.run(read_standing(layout))
        yield _TenantPart(layout, source, over.engine, over.options, tenant)


def _names(only: Iterable[str]) -> list[str]:
    try:
        return list(only)
    except TypeError:
        raise InvalidValue(
            f'only= takes the names of fields, as in only=["Customer.total"], got {shown(only)}'
        ) from None


def _check_places(*paths: PathName | None) -> None:
    """Checks output paths first, so that a long job does not fail when it writes its report."""
    for path in paths:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise InvalidValue(f"{shown(path)} is not the name of a file; pass a path")
        if path is not None and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or ".")):
            raise InvalidValue(f"{os.fspath(path)} cannot be written; name a file in a folder that exists")


def _source(over: Over) -> PathName | Dump:
    if over.source is None:
        return dump_of(over.store, over.layout.table)
    return scan_of(over.run, over.layout.table) if over.source == SCAN else over.source
