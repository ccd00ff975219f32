"""The text format of Prometheus, for the pages of `adjoin serve` and `adjoin maintain`.

What is counted stands where it is counted; only the form of a page stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal

from adjoin.dataclass import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class PageMetric:
    """One metric: a value, or a value for each value of one label. None is left out of the page."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    value: float | None = None
    label: str = ""
    values: Mapping[str, float] = field(default_factory=dict)

    def lines(self) -> list[str]:
        samples = [f'{self.name}{{{self.label}="{each}"}} {value!r}' for each, value in sorted(self.values.items())]
        if self.value is not None:
            samples.append(f"{self.name} {self.value!r}")
        if not samples and not self.label:
            return []
        return [f"# HELP {self.name} {self.meaning}", f"# TYPE {self.name} {self.kind}", *samples]


def page(metrics: Iterable[PageMetric]) -> str:
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())
