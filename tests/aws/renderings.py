"""Tables, and what each renderer makes of them; `python -m tests.aws.renderings` writes it down anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from adjoin import aws
from adjoin.tables import IndexDefinition, KeyAttribute, Projection, TableDefinition, Throughput
from examples import education, homes, invoices, people

GOLDEN = Path(__file__).parent / "golden"
EXAMPLES: dict[str, ModuleType] = {
    "invoices": invoices,
    "education": education,
    "homes": homes,
    "people": people,
}

EVERY = TableDefinition(
    "Every.Setting-1",
    KeyAttribute("PK"),
    KeyAttribute("SK", "N"),
    (
        IndexDefinition("Own", KeyAttribute("x"), None, Projection("KEYS_ONLY"), throughput=Throughput(1, 2)),
        IndexDefinition("Inherits", KeyAttribute("x"), KeyAttribute("y", "B"), Projection("INCLUDE", ("a", "b c"))),
        IndexDefinition("Local", KeyAttribute("PK"), KeyAttribute("y", "B"), local=True),
    ),
    ttl="expires",
    stream=False,
    throughput=Throughput(5, 6),
    point_in_time_recovery=True,
    deletion_protection=True,
    tags=(("cost center", "a/b:c@d"), ("équipe", "")),
)
"""A table with every setting there is."""

SEVERAL = TableDefinition(
    "Matches",
    KeyAttribute("id"),
    None,
    (
        IndexDefinition.over(
            "ByRound",
            [KeyAttribute("tournament"), KeyAttribute("region")],
            [KeyAttribute("round", "N"), KeyAttribute("bracket"), KeyAttribute("id")],
            Projection("INCLUDE", ("score",)),
        ),
        IndexDefinition.over(
            "ByPlayer", [KeyAttribute("player")], [KeyAttribute("tournament"), KeyAttribute("region")]
        ),
        IndexDefinition("ByRegion", KeyAttribute("region"), KeyAttribute("tournament")),
    ),
)
"""A table with indexes whose keys have several attributes."""


def table_of(example: ModuleType) -> TableDefinition:
    return aws.table(example.MODELS, example.LAYOUT)


TABLES: dict[str, TableDefinition] = {
    **{name: table_of(example) for name, example in EXAMPLES.items()},
    "every": EVERY,
    "several": SEVERAL,
    "plain": TableDefinition("Plain", KeyAttribute("id")),
}


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def _workbench(name: str) -> str:
    example = EXAMPLES[name]
    return as_json(aws.workbench(TABLES[name], example.MODELS, example.LAYOUT, sample=example.SAMPLE))


_RENDERERS: dict[str, Callable[[str], str]] = {
    "cloudformation.json": lambda name: as_json(aws.cloudformation(TABLES[name])),
    "cdk.json": lambda name: as_json(aws.cdk(TABLES[name])),
    "terraform.tf": lambda name: aws.terraform(TABLES[name]),
    "policy.json": lambda name: as_json(aws.iam_policy(TABLES[name], access="full", region="eu-west-1")),
}
RENDERINGS: dict[str, Callable[[], str]] = {
    **{
        f"{name}.{suffix}": lambda name=name, render=render: render(name)  # type: ignore[misc]
        for name in TABLES
        for suffix, render in _RENDERERS.items()
    },
    **{f"{name}.workbench.json": lambda name=name: _workbench(name) for name in EXAMPLES},  # type: ignore[misc]
}
"""File name to text."""


if __name__ == "__main__":
    for file, render in RENDERINGS.items():
        (GOLDEN / file).write_text(render())
