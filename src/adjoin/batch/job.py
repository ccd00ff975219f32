"""A batch job: one pass over a source, every rule computed, and what differs from what is stored.

Numbers are computed as the engine's decimals first. If one does not fit, the job is done again with numbers
of any size, which takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from adjoin.batch.aggregates import Computed, computed
from adjoin.batch.columns import TARGET, attribute_want
from adjoin.batch.differences import Differences, of_rule, of_summary
from adjoin.batch.engines import Engine, Source, Want
from adjoin.batch.numbers import Narrow, Numbers, Wide
from adjoin.batch.rule_book import RuleBook
from adjoin.batch.summaries import Summarized, summarized
from adjoin.batch.tables import Tables, Wanted, merged
from adjoin.errors import UnknownField
from adjoin.layouts.interface import BoundLayout
from adjoin.rules import Rule, Rules, SummaryRule
from adjoin.schema import unknown_field

T = TypeVar("T")


class Job:
    """What is computed of a source, and compared with what it stores."""

    def __init__(
        self,
        engine: Engine,
        source: Source,
        layout: BoundLayout,
        rules: Rules,
        *,
        only: Collection[str] | None = None,
        extra: Wanted | None = None,
        keys: Collection[type[Any]] = (),
    ) -> None:
        """`only` names fields, as "CUSTOMER.owed"; `extra` and `keys` are read besides what the rules need."""
        self.engine, self.layout, self._rules = engine, layout, rules
        self.book = RuleBook(rules, layout)
        named = {rule.name.partition(":")[0] for rule in rules.rules} | {summary_name(each) for each in rules.summaries}
        for name in only or ():
            if name not in named:
                raise UnknownField(unknown_field("what this graph computes", name, sorted(named)))
        self.rules: list[Rule] = [rule for rule in rules.rules if only is None or rule.name.partition(":")[0] in only]
        self.summaries: list[SummaryRule] = [
            each for each in rules.summaries if only is None or summary_name(each) in only
        ]
        needed = self.book.needed(self.rules)
        stored = [(rule.node.model, [self.book.stored_want(rule)]) for rule in self.rules]
        summed = [(each.node.model, [_summary_want(each)]) for each in self.summaries]
        edges = [(each.edge.model, [TARGET]) for each in self.summaries]
        wanted = merged(self.book.wanted(needed), stored, summed, edges, (extra or {}).items())
        halves = [each.edge.model for each in self.summaries if each.edge.symmetric]
        self.tables = Tables(engine, source, layout, wanted, keys=[*keys, *halves])
        self._numbers: Numbers = Narrow()
        self._computed: dict[str, Computed] | None = None

    def exactly(self, work: Callable[[Numbers], T]) -> T:
        """The result of some work with numbers; done again with wide ones if narrow ones do not fit."""
        overflows: tuple[type[Exception], ...] = (OverflowError, *self.engine.overflows)
        try:
            return work(self._numbers)
        except overflows:
            if isinstance(self._numbers, Wide):
                raise
        self._numbers = Wide()
        self._computed = None
        return work(self._numbers)

    @property
    def numbers(self) -> Numbers:
        """The form of numbers that held so far."""
        return self._numbers

    def computed(self, numbers: Numbers) -> dict[str, Computed]:
        if self._computed is None:
            self._computed = computed(self._rules, self.tables, numbers, [rule.name for rule in self.rules])
        return self._computed

    def aggregate(self, rule: Rule) -> tuple[Differences, Computed]:
        """What differs of one aggregate, and what was computed."""

        def work(numbers: Numbers) -> tuple[Differences, Computed]:
            found = self.computed(numbers)[rule.name]
            return of_rule(found, self.book.stored_want(rule), self.tables, numbers), found

        return self.exactly(work)

    def summary(self, rule: SummaryRule) -> Differences:
        """What differs of one batch summary."""

        def work(numbers: Numbers) -> Differences:
            found: Summarized = summarized(rule, self.tables, numbers)
            return of_summary(found, _summary_want(rule), self.tables)

        return self.exactly(work)


def summary_name(rule: SummaryRule) -> str:
    return f"{rule.node.label}.{rule.field}"


def _summary_want(rule: SummaryRule) -> Want:
    return attribute_want(rule.node.attributes[rule.field], None)
