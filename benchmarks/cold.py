"""The cold start: processor time of a new process that imports a client, opens it, and gets one item.

    python -m benchmarks.cold [--rounds R]

adjoin and boto3 take turns, each in a new process, and ask the same `adjoin serve`, which runs in a process of its own.
A first round, in which Python writes its bytecode, is not counted. It prints the table of `docs/benchmarks.md` as
Markdown.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.clients.plain import ACCESS_KEY, NODE_SORT_KEY, PERSON_PREFIX, REGION, SECRET_KEY, TABLE
from benchmarks.tables import table

ROOT = Path(__file__).parent.parent

_CLASSES = """
from datetime import datetime
from adjoin import Edge, Graph, Node

class Person(Node):
    id: str
    name: str
    email: str
    country: str
    city: str
    about: str
    visits: int
    score: int
    active: bool
    joined_at: datetime

class Follows(Edge[Person, Person]):
    since: datetime
    kind: str
"""


@dataclass(frozen=True)
class Start:
    """A program that a new process runs; `WHERE` in it is the server, or the file."""

    name: str
    program: str
    on_file: bool = False
    environment: Mapping[str, str] | None = None


_FILL = f"""{_CLASSES}
from adjoin import AdjacencyList
ada = Person(
    id="P1", name="Ada Lovelace", email="ada@example.org", country="United Kingdom", city="London",
    about="Wrote the first program.", visits=1842, score=987654, active=True, joined_at=datetime(2021, 3, 14),
)
# On a file, a location names no table, so the default one has her too.
for layout in (AdjacencyList(), AdjacencyList(table="{TABLE}")):
    with Graph("WHERE", [Person, Follows], layout) as g:
        g.put(ada)
"""
_GET = f"{_CLASSES}\nwith Graph('WHERE', [Person, Follows]) as g:\n    assert g.get(Person, 'P1').visits == 1842\n"
_BOTO3 = f"""
import boto3
client = boto3.client("dynamodb", endpoint_url="WHERE")
key = {{"PK": {{"S": "{PERSON_PREFIX}P1"}}, "SK": {{"S": "{NODE_SORT_KEY}"}}}}
assert client.get_item(TableName="{TABLE}", Key=key)["Item"]["visits"]["N"] == "1842"
"""
_NO_PLUGINS = {"PYDANTIC_DISABLE_PLUGINS": "1"}
AGAINST = "boto3: import, client, one get"
STARTS = (
    Start("adjoin: import, open, one get", _GET),
    Start("the same, `PYDANTIC_DISABLE_PLUGINS=1`", _GET, environment=_NO_PLUGINS),
    Start(AGAINST, _BOTO3),
    Start("`import adjoin`", "import adjoin"),
    Start("`from adjoin import Graph, Node`", "from adjoin import Graph, Node"),
    Start("`import boto3`", "import boto3"),
    Start(
        "`from pydantic import BaseModel`, and one model", "from pydantic import BaseModel\nclass M(BaseModel): id: str"
    ),
    Start("adjoin on a file: import, open, one get", _GET, on_file=True),
)


def _environment() -> dict[str, str]:
    """An environment with static credentials, in which Python keeps its bytecode."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    kept = {name: value for name, value in kept.items() if not name.lower().endswith("_proxy")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept | {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def _processor() -> float:
    """The processor time of all processes that this one has waited for, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(start: Start, endpoint: str, file: Path) -> float:
    """The processor time of one new process in milliseconds, with its children and with the start of Python."""
    where = str(file) if start.on_file else endpoint if "boto3" in start.program else _location(endpoint)
    environment = {**_environment(), **(start.environment or {})}
    before = _processor()
    subprocess.run([sys.executable, "-c", start.program.replace("WHERE", where)], check=True, env=environment, cwd=ROOT)
    return (_processor() - before) * 1000


def _location(endpoint: str) -> str:
    return f"dynamodb://{TABLE}?endpoint={endpoint}"


@contextmanager
def served(file: Path) -> Iterator[str]:
    """Serves a file in another process, and yields its address."""
    command = [sys.executable, "-m", "adjoin", "serve", str(file), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment(), cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1]
        finally:
            server.terminate()


def run(rounds: int, starts: Sequence[Start] = STARTS) -> dict[str, list[float]]:
    """The processor times of each start, in milliseconds."""
    found: dict[str, list[float]] = {start.name: [] for start in starts}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "cold.db"
        measured(Start("fill", _FILL, on_file=True), "", file)
        with served(file) as endpoint:
            for number in range(rounds + 1):
                for start in starts if number % 2 else reversed(starts):
                    took = measured(start, endpoint, file)
                    if number:
                        found[start.name].append(took)
    return found


def shown(found: Mapping[str, list[float]]) -> str:
    against = median(found[AGAINST])
    rows = [
        [name, f"{median(took):.0f}", f"{min(took):.0f}", f"{median(took) / against:.2f}"]
        for name, took in found.items()
    ]
    return table(["a new process", "processor, ms", "the least", "times boto3's get"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measures the cold start of adjoin and of boto3.")
    parser.add_argument("--rounds", type=int, default=15, help="how many processes of each kind (default: 15)")
    parser.add_argument("--quick", action="store_true", help="three of each kind")
    options = parser.parse_args(arguments)
    print(shown(run(3 if options.quick else options.rounds)))


if __name__ == "__main__":
    main()
