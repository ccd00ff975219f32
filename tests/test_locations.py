"""Locations: what they name, their options, and what is missing for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from adjoin import AdjacencyList, AsyncGraph, Graph, InvalidLocation, MissingExtra
from adjoin.locations import (
    FileLocation,
    Location,
    ServiceLocation,
    identity,
    open_async_store,
    open_store,
    parse_location,
    table_named_by,
)
from adjoin.stores.dynamodb import AsyncDynamoDBStore, DynamoDBStore
from adjoin.stores.sqlite import SQLiteStore
from tests.models import SCHOOL


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("graph.db", FileLocation("graph.db", {})),
        (":memory:", FileLocation(":memory:", {})),
        ("graph.db?durability=process", FileLocation("graph.db", {"durability": "process"})),
        ("dynamodb", FileLocation("dynamodb", {})),
        ("C:\\graphs\\graph.db", FileLocation("C:\\graphs\\graph.db", {})),
        (Path("dynamodb://T?x"), FileLocation("dynamodb:/T?x", {})),
        ("dynamodb://Education", ServiceLocation("Education", {})),
        ("dynamodb://Education/", ServiceLocation("Education", {})),
        ("dynamodb://", ServiceLocation(None, {})),
        ("dynamodb://?region=eu-west-1", ServiceLocation(None, {"region": "eu-west-1"})),
        ("dynamodb://My.Table_1-x", ServiceLocation("My.Table_1-x", {})),
        (
            "dynamodb://Tab?region=eu-west-1&profile=work&connections=8&timeout=2.5&deadline=1e1",
            ServiceLocation(
                "Tab", {"region": "eu-west-1", "profile": "work", "connections": 8, "timeout": 2.5, "deadline": 10.0}
            ),
        ),
        (
            "dynamodb://Tab?endpoint=http://127.0.0.1:8000",
            ServiceLocation("Tab", {"endpoint": "http://127.0.0.1:8000"}),
        ),
        (
            "dynamodb://Tab?endpoint=https%3A%2F%2Fhost%2Fpath%3Fx&timeout=.5",
            ServiceLocation("Tab", {"endpoint": "https://host/path?x", "timeout": 0.5}),
        ),
    ],
)
def test_locations(text: Any, location: Location) -> None:
    assert parse_location(text) == location
    assert table_named_by(text) == getattr(location, "table", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not name a file"),
        ("?durability=process", "does not name a file"),
        ("graph.db?region=eu-west-1", "a file has no option 'region'; it has durability"),
        ("graph.db?durability=none", "durability cannot be 'none'; it must be one of"),
        ("dynamodb://T?durability=process", "DynamoDB has no option 'durability'; it has region, endpoint, profile"),
        ("dynamodb://T?Region=x", "no option 'Region'"),
        ("dynamodb://T?region=", "region cannot be ''; it must not be empty"),
        ("dynamodb://T?endpoint", "endpoint cannot be ''; it must not be empty"),
        *((f"dynamodb://T?timeout={value}", f"timeout cannot be '{value}'; it must be a number of seconds")
          for value in ("0", "-1", "soon", "nan", "inf", "1e999", "")),
        *((f"dynamodb://T?deadline={value}", f"deadline cannot be '{value}'; it must be a number of seconds")
          for value in ("0", "-1", "soon")),
        *((f"dynamodb://T?connections={value}", f"connections cannot be '{value}'; it must be a whole number of at")
          for value in ("0", "-1", "2.5", "many", "")),
        *((f"dynamodb://{name}", f"{name!r} is not the name of a table on DynamoDB: 3 to 255 letters")
          for name in ("T", "ab", "my table", "x" * 256, "a/b")),
        ("s3://bucket/graph", "s3:// is not a location of graphs; use a path, or dynamodb://"),
        ("DynamoDB://T", "DynamoDB:// is not a location"),
        ("dynamo://T", "dynamo:// is not a location"),
    ],
)  # fmt: skip
def test_locations_that_cannot_be_understood(text: str, message: str) -> None:
    with pytest.raises(InvalidLocation) as caught:
        parse_location(text)
    assert message in str(caught.value)
    for open_one in (open_store, open_async_store):
        with pytest.raises(InvalidLocation):
            open_one(text)


def test_what_is_opened(tmp_path: Path) -> None:
    nowhere = "dynamodb://?endpoint=http://[::1]:1"
    for location, kind in ((tmp_path / "graph.db", SQLiteStore), (nowhere, DynamoDBStore)):
        store = open_store(location)
        assert isinstance(store, kind)
        store.close()
    assert isinstance(open_async_store(nowhere), AsyncDynamoDBStore)


def test_the_table_of_a_location_goes_before_the_layouts() -> None:
    location = "dynamodb://Education?endpoint=http://[::1]:1"
    assert AsyncGraph(location, SCHOOL, AdjacencyList(table="Other"))._layout.table == "Education"
    named_by_layout = AsyncGraph("dynamodb://?endpoint=http://[::1]:1", SCHOOL, AdjacencyList(table="Other"))
    assert named_by_layout._layout.table == "Other"


def test_what_the_service_needs_and_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """botocore is needed where the environment does not say everything, as with a file of AWS's configuration."""
    package = "botocore"
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in [name for name in sys.modules if name.startswith("adjoin.stores.dynamodb")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    for graph in (Graph, AsyncGraph):
        with pytest.raises(
            MissingExtra, match=rf"needs {package}.*; install it with: pip install 'adjoin\[dynamodb\]'"
        ):
            graph("dynamodb://Tab?region=eu-west-1", SCHOOL)
    with Graph(":memory:", SCHOOL) as g:
        assert g.get(SCHOOL[0], "files need neither") is None


def test_all_spellings_of_a_location_have_one_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("[profile work]\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    assert identity("graph.db") == identity(tmp_path / "graph.db") == identity("./graph.db?durability=process")
    plain = identity("dynamodb://Tab?region=eu-west-1")
    assert plain == identity("dynamodb://?region=eu-west-1&timeout=2")
    assert "profile" not in plain
    assert plain != identity("dynamodb://Tab?region=eu-west-2")
    assert identity("dynamodb://Tab?region=eu-west-1&profile=work") == f"{plain}&profile=work"
