"""Writers and maintainers as plans driven by hand, request by request, over a real store in memory.

Every plan is a process. At each tick one request of one process is performed, so that all others may come
between any two. A maintainer may be thrown away at any request; what it was given comes again. Changes
come late, twice, and in any order across items. Any process may stop for a long while, and then go on with
what it had read. Indexes may be behind their table, for ever even.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from adjoin import AdjoinError, Graph
from adjoin.plans.maintenance.affected import apply_changes
from adjoin.plans.maintenance.report import Tally
from adjoin.requests import (
    BatchGet,
    BatchGetResponse,
    Delete,
    Get,
    ItemChange,
    Plan,
    Put,
    Query,
    ReadChanges,
    Request,
    Response,
    Scan,
    TransactGet,
)
from adjoin.reserved import DECLARED
from adjoin.stores.sqlite import SQLiteStore
from tests.shares import FIRST, SEEDS

READS = (Get, BatchGet, TransactGet, Query, Scan, ReadChanges)
LIMIT = 200_000
"""Requests after which something goes round in circles."""


def with_seeds(run: Callable[[int], object], part: int, parts: int, seeds: int = SEEDS) -> None:
    """Runs one of several parts of all seeds; a failure tells which it was."""
    for seed in range(FIRST + part, FIRST + seeds, parts):
        try:
            run(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


class Process:
    """A plan, and the batch of requests that it waits for."""

    def __init__(self, graph: Graph, plan: Plan[Any], name: str) -> None:
        self.plan, self.name = plan, name
        self.is_done = False
        self.asleep_until = 0
        self.are_torn = False
        """Whether others may come between the items of a batch that it reads."""
        self.error: AdjoinError | None = None
        self._store = graph._store
        self._answers: list[Any] = []
        self._open: list[int] = []
        self._failure: AdjoinError | None = None
        self._go_on(lambda: next(plan))

    def _go_on(self, resume: Callable[[], Any]) -> None:
        try:
            self._batch: tuple[Request, ...] = tuple(resume())
        except StopIteration:
            self.is_done = True
        except AdjoinError as error:
            self.is_done, self.error = True, error
        else:
            self._answers = [None] * len(self._batch)
            self._open = list(range(len(self._batch)))
            self._failure = None

    def is_about(self, kind: type[Any]) -> bool:
        """Whether such a request is what comes next."""
        return not self.is_done and any(isinstance(request, kind) for request in self._batch)

    def finish(self) -> None:
        while not self.is_done:
            self.step(random.Random(0))
        if self.error is not None:
            raise self.error

    @property
    def waits_for(self) -> Request:
        """A request that it is about to make."""
        return self._batch[self._open[0]]

    def step(self, chance: random.Random) -> Request:
        """Performs one request of the batch, any of those that are left; the last one lets the plan go on."""
        number = self._open.pop(chance.randrange(len(self._open)))
        request = self._batch[number]
        if isinstance(request, BatchGet) and len(request.gets) > 1 and self.are_torn:
            self._get_one(number, request, chance)
        else:
            try:
                (self._answers[number],) = self._store.execute((request,))
            except AdjoinError as error:
                self._failure = self._failure or error
        self._answered()
        return request

    def _get_one(self, number: int, request: BatchGet, chance: random.Random) -> None:
        """Reads one item of a batch, because the items of a batch are not read at one instant."""
        found: dict[int, Any] = self._answers[number] or {}
        place = chance.choice([each for each in range(len(request.gets)) if each not in found])
        response: Any
        (response,) = self._store.execute((BatchGet((request.gets[place],)),))
        found[place] = response.items[0]
        if len(found) < len(request.gets):
            self._answers[number] = found
            self._open.append(number)
        else:
            self._answers[number] = BatchGetResponse([found[each] for each in range(len(found))])

    def _answered(self) -> None:
        if self._open:
            return
        if self._failure is not None:
            failure = self._failure
            self._go_on(lambda: self.plan.throw(failure))
        else:
            self._go_on(lambda: self.plan.send(self._answers))


class Stream:
    """Changes that were not delivered yet, in order for each item and in no order across items."""

    def __init__(self, graph: Graph, chance: random.Random) -> None:
        self._graph, self._chance = graph, chance
        self._position: str | None = None
        self._waiting: dict[str, list[ItemChange]] = {}

    def _read(self) -> None:
        while True:
            response: Any
            (response,) = self._graph._store.execute((ReadChanges(self._graph._layout.table, self._position),))
            self._position = response.next
            for change in response.changes:
                if not self._graph._layout.is_bookkeeping(change.key):
                    self._waiting.setdefault(repr(change.key), []).append(change)
            if not response.changes:
                return

    def __len__(self) -> int:
        self._read()
        return sum(map(len, self._waiting.values()))

    def take(self, most: int) -> list[ItemChange]:
        """Some changes; now and then one that comes again later."""
        self._read()
        taken: list[ItemChange] = []
        while self._waiting and len(taken) < most:
            item = self._chance.choice(list(self._waiting))
            queue = self._waiting[item]
            taken.append(queue[0])
            if self._chance.random() < 0.9:
                queue.pop(0)
            if not queue:
                del self._waiting[item]
        return taken

    def give_back(self, changes: Iterable[ItemChange]) -> None:
        for change in changes:
            self._waiting.setdefault(repr(change.key), []).insert(0, change)


class LateIndexes:
    """A store whose indexes are behind its table, each item by as much as chance will have it.

    They are asked from one of several copies of the table, which know different things: what one query has found,
    the next one may not find yet. With a `pace` of 0 they stay empty for ever.
    """

    creates_tables = True

    def __init__(self, chance: random.Random, models: list[Any], layout: Any = None, pace: float = 0.1) -> None:
        self._chance, self._pace = chance, pace
        self._store = SQLiteStore(":memory:")
        self._copies = [Graph(":memory:", models, layout) for _ in range(2)]
        self._table = self._copies[0]._layout.table
        self._key_of = self._copies[0]._layout.key_of
        self._position: str | None = None
        self._waiting: list[dict[str, list[ItemChange]]] = [{} for _ in self._copies]

    def execute(self, requests: Sequence[Request]) -> list[Response]:
        answers = []
        for request in requests:
            if isinstance(request, Query) and request.index is not None:
                answers += self._chance.choice(self._copies)._store.execute((request,))
            else:
                answers += self._store.execute((request,))
        if self._pace and self._chance.random() < 0.2:
            self._catch_up()
        return answers

    def _catch_up(self) -> None:
        response: Any
        (response,) = self._store.execute((ReadChanges(self._table, self._position),))
        self._position = response.next
        for waiting, graph in zip(self._waiting, self._copies, strict=True):
            for change in response.changes:
                waiting.setdefault(repr(self._key_of(change.key)), []).append(change)
            for item in [item for item in waiting if self._chance.random() < self._pace]:
                change = waiting[item].pop(0)
                request = Delete(self._table, change.key) if change.new is None else Put(self._table, change.new)
                graph._store.execute((request,))
                if not waiting[item]:
                    del waiting[item]

    def dump(self, table: str) -> Any:
        return self._store.dump(table)

    def close(self) -> None:
        for graph in self._copies:
            graph.close()
        self._store.close()


class Simulation:
    """Some writers and maintainers at once, and a stream that misbehaves."""

    def __init__(self, graph: Graph, seed: int, *, maintainers: int = 3, crashes: float = 0.02) -> None:
        self.graph = graph
        self.chance = random.Random(seed)
        self.stream = Stream(graph, self.chance)
        self.tally = Tally()
        self._crashes, self._maintainers = crashes, maintainers
        self._writers: list[Process] = []
        self._at_work: list[tuple[Process, list[ItemChange]]] = []
        self.requests = 0
        self.are_torn = seed % 3 == 0
        """Whether batches are read item by item."""
        self.watch: Callable[[], None] = lambda: None
        """Called after every request that writes: others leave all as it was."""

    def write(self, plan: Plan[Any], name: str) -> None:
        """Starts a writer, and lets everybody work for a while."""
        writer = Process(self.graph, plan, name)
        writer.are_torn = self.are_torn
        if not writer.is_done:
            self._writers.append(writer)
        for _ in range(self.chance.randrange(12)):
            self.tick()

    def tick(self) -> None:
        """One request of somebody."""
        self.requests += 1
        assert self.requests < LIMIT, "it goes round in circles"
        if len(self._at_work) < self._maintainers and self.chance.random() < 0.3:
            self._start_maintainer()
        everybody = [*self._writers, *(process for process, _ in self._at_work)]
        awake = [process for process in everybody if process.asleep_until <= self.requests]
        if not awake:
            return
        process = self.chance.choice(awake)
        if self.chance.random() < 0.1:
            # Long enough for others to do and undo something, and to apply it.
            process.asleep_until = self.requests + self.chance.randrange(10, 100)
            return
        if not isinstance(process.step(self.chance), READS):
            self.watch()
        self._writers = [writer for writer in self._writers if not writer.is_done]
        for place, (maintainer, changes) in enumerate(self._at_work):
            has_crashed = maintainer is process and self.chance.random() < self._crashes
            if has_crashed or maintainer.is_done:
                del self._at_work[place]
                if has_crashed or maintainer.error is not None:
                    maintainer.plan.close()
                    self.stream.give_back(changes)
                if maintainer.error is not None and not maintainer.error.retryable:
                    raise maintainer.error
                break

    def _start_maintainer(self) -> None:
        if changes := self.stream.take(self.chance.randrange(1, 8)):
            maintainer = Process(self.graph, apply_changes(self.graph._layout, changes, self.tally), "maintainer")
            maintainer.are_torn = self.are_torn
            if not maintainer.is_done:
                self._at_work.append((maintainer, changes))

    def drain(self) -> None:
        """Lets everybody finish, until no change is left."""
        self._crashes, self._maintainers = 0.0, max(1, self._maintainers)
        while self._writers or self._at_work or len(self.stream):
            self.tick()


PACES = (None, 0.4, 0.1, 0.0)
"""How fast indexes follow; None if they are never behind."""


def opened(seed: int, models: list[Any], layout: Any = None) -> Graph:
    """A graph for one seed, over indexes that are behind in three of four."""
    pace = PACES[seed % len(PACES)]
    if pace is None:
        return Graph(":memory:", models, layout)
    return Graph(LateIndexes(random.Random(seed), models, layout, pace), models, layout)


def stored(graph: Graph) -> list[dict[str, Any]]:
    """Every item there is, besides the record of what is declared."""
    items: list[dict[str, Any]] = []
    scan: Scan | None = Scan(graph._layout.table)
    while scan is not None:
        response: Any
        (response,) = graph._store.execute((scan,))
        items += [item for item in response.items if DECLARED not in item]
        scan = None if response.last is None else replace(scan, start=response.last)
    return items
