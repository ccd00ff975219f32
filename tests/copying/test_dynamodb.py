"""Copies to DynamoDB and from it, on servers that take its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from adjoin import Graph
from adjoin.cli import main
from adjoin.copying import Binding, StateFile, copy, verify
from adjoin.locations import open_store
from adjoin.requests import DropTable, Put, Request, Scan
from adjoin.stores.interface import Store
from adjoin.stores.sqlite import SQLiteStore
from adjoin.tables import TableDefinition
from tests.copying.examples import FULL, KINDS, filled, many
from tests.faults import FaultyStore, Interrupted
from tests.models import ANN, MATHS, SCHOOL, Enrollment
from tests.servers.open import Stores
from tests.stores.examples import PLAIN, everything, item, n


class Service:
    """The server, and tables on it that are this test's own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._names: list[str] = []
        self.store: Store = open_store(self.at(""))

    def at(self, table: str) -> str:
        return f"dynamodb://{table}?endpoint={self._address}&region=us-east-1"

    def named(self, definition: TableDefinition) -> TableDefinition:
        self._names.append(f"copy-{uuid4().hex}")
        return replace(definition, name=self._names[-1])

    def close(self) -> None:
        self.store.execute([DropTable(name) for name in self._names])
        self.store.close()


@pytest.fixture(params=["serve", "ministack"])
def service(request: pytest.FixtureRequest, servers: Stores) -> Iterator[Service]:
    service = Service(servers.address(request.param))
    yield service
    service.close()


def sample() -> list[dict[str, dict[str, object]]]:
    return [item("p", kind, **attributes) for kind, attributes in KINDS.items() if "last" not in kind] + many(300, 50)


def by_key(store: Store, table: str) -> list[str]:
    return sorted(str(sorted(each.items())) for each in everything(store, table))


def test_to_the_service_and_back(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody writes meanwhile, so there is no change to wait for.
    monkeypatch.setattr("adjoin.cli.copy.STREAM_LAG", 0.1)
    definition = service.named(FULL)
    path, back = str(tmp_path / "from.db"), str(tmp_path / "back.db")
    source = SQLiteStore(path)
    filled(source, FULL, sample())
    assert main(["copy", path, service.at(definition.name), "--verify", "--quiet"]) == 0
    assert main(["copy", service.at(definition.name), back, "--to", "Full", "--verify"]) == 0
    assert f"Full: copied to {service.at(definition.name)}: 308 items" in capsys.readouterr().out
    returned = SQLiteStore(back)
    assert by_key(returned, "Full") == by_key(source, "Full")
    assert verify(source, returned, "Full") == 308
    assert not list(tmp_path.glob("*.json"))
    source.close()
    returned.close()


def test_a_program_goes_on_there_with_one_line_changed(service: Service, tmp_path: Path) -> None:
    definition = service.named(PLAIN)
    path = str(tmp_path / "school.db")
    answers = []
    for location in (path, service.at(definition.name)):
        with Graph(location, SCHOOL) as g:
            if location == path:
                g.put_many([ANN, MATHS])
                g.connect(Enrollment, "ann", "maths", grade="A")
                assert main(["copy", path, service.at(definition.name), "--quiet"]) == 0
            answers.append([(edge, node) for edge, node in g.into("maths", Enrollment).nodes()])
    assert answers[0] == answers[1] != []


def test_interrupted_on_the_way_to_the_service(service: Service, tmp_path: Path) -> None:
    definition = service.named(PLAIN)
    source = SQLiteStore(":memory:")
    filled(source, PLAIN, many(2_500, 50))
    state = StateFile(tmp_path / "state", Binding("a", "b", "Plain", definition.name, 1))
    for step in (3, 40, 70):
        faulty = FaultyStore(service.store)
        faulty.stop_at(step, "after")
        with pytest.raises(Interrupted):
            copy(source, faulty, "Plain", to=definition.name, state=state)
        source.execute([Put("Plain", item("new", str(step), n=n(step)))])
    copied = copy(source, service.store, "Plain", to=definition.name, state=state)
    assert copied.items >= 2_500
    assert copied.changes == 3
    assert verify(source, service.store, "Plain", to=definition.name) == 2_503


def test_changes_on_the_service_meanwhile(service: Service) -> None:
    definition = service.named(PLAIN)
    filled(service.store, definition, many(300, 50))
    source = FaultyStore(service.store)
    steps = count()

    def write_meanwhile(_number: int, request: Request) -> None:
        if isinstance(request, Scan):
            step = next(steps)
            service.store.execute([Put(definition.name, item("p0", "000003", n=n(step)))])
            service.store.execute([Put(definition.name, item("new", str(step)))])

    source.fault = write_meanwhile
    destination = SQLiteStore(":memory:")
    copied = copy(source, destination, definition.name, to="Plain", segments=4, lag=0.5)
    assert copied.changes == 2 * next(steps)
    assert by_key(destination, "Plain") == by_key(service.store, definition.name)
    destination.close()


def test_between_two_tables_of_the_service(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ours, theirs = service.named(replace(FULL, stream=False)), service.named(FULL)
    filled(service.store, ours, sample())
    arguments = ["copy", service.at(ours.name), service.at(theirs.name)]
    assert main([*arguments, "--verify"]) == 0
    assert "it keeps no changes" in capsys.readouterr().out
    assert main(arguments) == 1
    assert "already has items" in capsys.readouterr().err
    assert main(["copy", service.at(ours.name), service.at(ours.name)]) == 2
    assert "the same table" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
