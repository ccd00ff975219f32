"""`rebuild` and `verify` as both graphs call them: of which tenants, where items are read, and what drives the plans.

A graph without a tenant does both for itself and for all tenants of its table, and answers for all of them together.
What ran to its end is recorded in the table, so that what was missed before is no longer due (see
`plans.maintenance.upkeep`).
Nothing that computes is imported before a call asks for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from adjoin.batch import needed
from adjoin.batch.sources import SCAN, Dump, dump_of, index_delay, scan_of
from adjoin.errors import InvalidValue
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan
from adjoin.plans.maintenance.standing import end_rebuild, keep, read_standing, recounted, take_up
from adjoin.plans.maintenance.upkeep import REBUILT, VERIFIED, Begun, begin, end
from adjoin.plans.shards import read_shard_maps
from adjoin.rules import Rules

if TYPE_CHECKING:
    from adjoin.batch.findings import Audit
    from adjoin.batch.rebuild import Rebuilt

Run: TypeAlias = Callable[[Plan[Any]], Any]
PathName: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[str, int], None]

_KEPT = ("declaration", "aggregate", "ledger", "rank", "copy")
"""What is wrong if changes were missed: the kinds of findings that must be repaired before none is due."""


@dataclass(frozen=True, slots=True)
class Over:
    """What a call is over: a graph, what drives its plans, and what is read by which engine."""

    layout: BoundLayout
    store: Any
    run: Run
    source: PathName | None
    engine: Any
    options: Mapping[str, Any]
    progress: Progress | None
    clock: Callable[[], float] = time.time

    def told(self, tenant: str | None) -> Progress | None:
        """Who is told about the work on a tenant."""
        tell = self.progress
        return tell if tell is None or tenant is None else lambda name, done: tell(f"{tenant} {name}", done)


@dataclass(frozen=True, slots=True)
class _Part:
    """One tenant's graph, or the one that was asked, and what is read of it by which engine."""

    layout: BoundLayout
    source: Any
    engine: Any
    options: Mapping[str, Any]
    tenant: str | None = None
    """Whose it is, where a graph was asked that is of none."""


class _Upkeep:
    """What is recorded when the parts of a call begin and end."""

    def __init__(self, over: Over, name: str, is_recorded: bool) -> None:
        self._over, self._name, self._is_recorded = over, name, is_recorded
        self._whole: Begun | None = None
        self._read_at: float | None = None
        self._are_done = True
        self.missed = False
        """Whether changes were missed of everything: a maintainer of all tenants missed them of each."""

    def begin(self, part: _Part) -> Begun | None:
        if not self._is_recorded:
            return None
        begun: Begun = self._over.run(begin(part.layout, self._over.clock()))
        if part.tenant is None:
            self._whole, self._read_at = begun, getattr(part.source, "at", None)
            self.missed = begun.due is not None
        return begun

    def end(self, part: _Part, begun: Begun | None, is_done: bool) -> None:
        self._are_done &= is_done
        if begun is not None and is_done and part.tenant is not None:
            self._over.run(end(part.layout, begun, self._name, self._read_at))

    def finish(self) -> None:
        """All parts are done, as far as they could be."""
        if self._whole is not None and self._are_done:
            self._over.run(end(self._over.layout, self._whole, self._name, self._read_at))


def rebuilt(
    over: Over, only: Iterable[str] | None, dry_run: bool, state: PathName | None, diff: PathName | None
) -> Rebuilt:
    _check_places(state, diff)
    names = None if only is None else list(only)
    upkeep = _Upkeep(over, REBUILT, is_recorded=names is None and not dry_run)
    results: dict[str | None, Rebuilt] = {}
    if not dry_run:
        # Before anything is read: who applies what comes after that knows what is declared.
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


def _copied(over: Over, part: _Part) -> bool:
    """Makes copies on edges true as well, which no aggregate tells; says whether they are."""
    copies = part.layout.rules.copies
    return not copies or _is_kept(_audited(over, part, Rules(part.layout.schema, (), copies, ()), ("copy",)))


def verified(over: Over, repair: bool | Iterable[str | bool], report: PathName | None) -> Audit:
    _check_places(report)
    kinds = needed("findings").repairs(repair)
    # Who only looks may have no right to write, and needs none.
    upkeep = _Upkeep(over, VERIFIED, is_recorded=bool(kinds))
    audits: dict[str | None, Audit] = {}
    with _parts(over) as parts:
        for part in parts:
            # Who repairs keeps what is declared, like a maintainer.
            over.run(keep(part.layout, over.clock) if kinds else read_standing(part.layout))
            begun = upkeep.begin(part)
            audits[part.tenant] = _audited(over, part, part.layout.rules, kinds)
            upkeep.end(part, begun, _is_kept(audits[part.tenant]))
    upkeep.finish()
    audit = audits.pop(None).together({tenant: each for tenant, each in audits.items() if tenant is not None})
    if report is not None:
        audit.save(report)
    return audit


def _audited(over: Over, part: _Part, rules: Rules, kinds: tuple[str, ...]) -> Audit:
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
def _parts(over: Over) -> Iterator[Iterator[_Part]]:
    """The graphs that a call is about, the one that was asked first."""
    engines = needed("engines")
    opened = engines.open_engine(over.engine, **over.options)
    try:
        read = engines.opened_source(_source(over), opened, over.layout.table)
        own = _Part(over.layout, read, opened, {})
        if over.layout.tenant is not None:
            yield iter([own])
            return
        with engines.readable(read, opened), needed("slices").tenant_slices(opened, read, over.layout) as slices:
            yield chain([own], _tenants(over, slices))
    finally:
        if opened is not over.engine:
            opened.close()


def _tenants(over: Over, slices: Mapping[str, Dump]) -> Iterator[_Part]:
    for tenant, source in slices.items():
        layout = over.layout.for_tenant(tenant)
        over.run(read_shard_maps(layout))
        over.run(read_standing(layout))
        yield _Part(layout, source, over.engine, over.options, tenant)


def _check_places(*paths: PathName | None) -> None:
    """Files that are written at the end are no reason to fail then."""
    for path in paths:
        if path is not None and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or ".")):
            raise InvalidValue(f"{os.fspath(path)} cannot be written: name a file in a folder that is there")


def _source(over: Over) -> PathName | Dump:
    if over.source is None:
        return dump_of(over.store, over.layout.table)
    return scan_of(over.run, over.layout.table) if over.source == SCAN else over.source
