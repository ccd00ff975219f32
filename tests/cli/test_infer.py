"""`adjoin infer` on files, exports and tables of the service: what it writes, prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adjoin import Graph
from adjoin.cli import main
from adjoin.inferring.checking import executed
from adjoin.requests import CreateTable, Put
from adjoin.stores.sqlite import SQLiteStore
from examples import education, shop
from pytest_adjoin import DynamoDB
from tests.inferring.published import PUBLISHED
from tests.inferring.tables import scanned


@pytest.fixture
def school(tmp_path: Path) -> str:
    path = str(tmp_path / "school.db")
    with education.open_graph(path) as g:
        g.put_many(education.SAMPLE)
    return path


def test_the_program_is_printed(school: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", school]) == 0
    shown = capsys.readouterr()
    assert shown.err == "table Education: 7 of 7 items explained (100.0 %) by 3 classes\n"
    module = executed(shown.out)
    with module.open_graph(school) as g:
        before = scanned(g._store, "Education")
        g.put_many(list(g.scan()))
        assert scanned(g._store, "Education") == before
        assert list(g.scan().others) == []
        assert [edge.source for edge in module.enrollments_to_course(g, "C1")] == ["S1", "S2"]


def test_the_program_is_written_once(school: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "school.py"
    assert main(["infer", school, "--out", str(out)]) == 0
    assert (
        capsys.readouterr().out == f"table Education: 7 of 7 items explained (100.0 %) by 3 classes; written to {out}\n"
    )
    written = out.read_text()
    assert main(["infer", school, "--out", str(out)]) == 1
    assert "already exists; choose another name" in capsys.readouterr().err
    assert out.read_text() == written


def test_as_json(school: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", school, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["table"], told["read"], told["explained"], told["unexplained"]) == ("Education", 7, 7, [])
    assert {"name": "Student", "kind": "node", "items": 2, "unsure": []} in told["classes"]
    assert "enrollments_of_student" in told["functions"]


def test_an_export(school: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exported = str(tmp_path / "exported")
    assert main(["export", school, exported, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["infer", exported]) == 0
    module = executed(capsys.readouterr().out)
    with module.open_graph(school) as g:
        assert list(g.scan().others) == []
        assert [edge.source for edge in module.enrollments_to_course(g, "C1")] == ["S1", "S2"]


def test_the_keys_of_an_export_may_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definition, items = PUBLISHED["movies"]()
    path, exported = str(tmp_path / "movies.db"), str(tmp_path / "exported")
    store = SQLiteStore(path)
    store.execute([CreateTable(definition), *(Put("Movies", item) for item in items)])
    store.close()
    assert main(["export", path, exported, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["infer", exported, "--keys", "year,title", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["explained"] == len(items)
    assert main(["infer", exported, "--keys", "year,info"]) == 1
    assert "not every item has the attribute 'info' as text" in capsys.readouterr().err
    assert main(["infer", exported, "--keys", "year"]) == 1
    assert "do not show the keys of the table Movies; name them, as in --keys PK,SK" in capsys.readouterr().err
    assert main(["infer", path, "--keys", "year"]) == 2


def test_a_sample_of_a_large_table_comes_from_many_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definition, items = PUBLISHED["battle_royale"]()
    path = str(tmp_path / "games.db")
    store = SQLiteStore(path)
    store.execute([CreateTable(definition)])
    store.execute([Put(definition.name, item) for item in items])
    store.close()
    assert main(["infer", path, "--sample", "90", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert 90 <= told["read"] < len(items)
    assert {each["name"] for each in told["classes"]} == {"User", "Game", "GameUser"}
    assert main(["infer", path, "--sample", "90"]) == 0
    assert f"of about {len(items)} items" in capsys.readouterr().out


def test_records_of_a_table_are_read_beside_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "shop.db")
    with Graph(path, shop.MODELS, shop.LAYOUT) as g:
        g.put_many(shop.SAMPLE)
        g.maintain(once=True)
    assert main(["infer", path, "--sample", "10"]) == 0
    assert "5 of 5 items" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nothing.db"], 1, "the file nothing.db does not exist"),
        (["dynamodb://"], 2, "name the table, as in dynamodb://Education"),
        ([".", "--keys", "a,b,c"], 1, "has no export"),
        ([".", "--keys", "a", "--sample", "5"], 1, "has no export"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["infer", *arguments]) == status
    assert said in capsys.readouterr().err


def test_a_sample_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["infer", "any.db", "--sample", "0"])
    assert "is not a whole number from 1 on" in capsys.readouterr().err


def test_a_table_of_the_service(adjoin_dynamodb: DynamoDB, capsys: pytest.CaptureFixture[str]) -> None:
    with Graph("dynamodb://Education", education.MODELS, education.LAYOUT) as g:
        g.create_table()
        g.put_many(education.SAMPLE)
    assert main(["infer", "dynamodb://Education"]) == 0
    shown = capsys.readouterr()
    assert "7 of 7 items explained" in shown.err
    module = executed(shown.out)
    with module.open_graph("dynamodb://Education") as g:
        assert list(g.scan().others) == []
        before = sorted(map(str, g.scan()))
        g.put_many(list(g.scan()))
        assert sorted(map(str, g.scan())) == before
