"""`rebuild` and `verify` as both graphs call them: where items are read, and what drives the plans that write.

Nothing that computes is imported before a call asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from adjoin.batch import needed
from adjoin.batch.sources import SCAN, Dump, dump_of, index_delay, scan_of
from adjoin.errors import InvalidValue
from adjoin.layouts.interface import BoundLayout
from adjoin.plans import Plan

if TYPE_CHECKING:
    from adjoin.batch.findings import Audit
    from adjoin.batch.rebuild import Rebuilt

Run: TypeAlias = Callable[[Plan[Any]], Any]
PathName: TypeAlias = str | os.PathLike[str]


def rebuilt(
    layout: BoundLayout,
    store: Any,
    run: Run,
    source: PathName | None,
    engine: Any,
    only: Iterable[str] | None,
    dry_run: bool,
    state: PathName | None,
    diff: PathName | None,
    progress: Callable[[str, int], None] | None,
    options: Mapping[str, Any],
) -> Rebuilt:
    _check_places(state, diff)
    return cast(
        "Rebuilt",
        needed("rebuild").rebuild(
            layout,
            layout.rules,
            _source(layout, store, run, source),
            engine,
            run=None if dry_run else run,
            only=None if only is None else list(only),
            state=state,
            diff=diff,
            delay=index_delay(store),
            progress=progress,
            **options,
        ),
    )


def verified(
    layout: BoundLayout,
    store: Any,
    run: Run,
    source: PathName | None,
    engine: Any,
    repair: bool | Iterable[str | bool],
    report: PathName | None,
    progress: Callable[[str, int], None] | None,
    options: Mapping[str, Any],
) -> Audit:
    _check_places(report)
    audit = needed("audit").verify(
        layout,
        layout.rules,
        _source(layout, store, run, source),
        engine,
        run=run,
        repair=needed("findings").repairs(repair),
        delay=index_delay(store),
        progress=progress,
        **options,
    )
    if report is not None:
        audit.save(report)
    return cast("Audit", audit)


def _check_places(*paths: PathName | None) -> None:
    """Files that are written at the end are no reason to fail then."""
    for path in paths:
        if path is not None and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or ".")):
            raise InvalidValue(f"{os.fspath(path)} cannot be written: name a file in a folder that is there")


def _source(layout: BoundLayout, store: Any, run: Run, source: PathName | None) -> PathName | Dump:
    if source is None:
        return dump_of(store, layout.table)
    return scan_of(run, layout.table) if source == SCAN else source
