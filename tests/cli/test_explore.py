"""`adjoin explore` as a command: what it opens, what it prints, and what it says when it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from orjson import loads

from adjoin import Graph
from adjoin.cli import main
from adjoin.explorer import serving
from examples import shop
from tests.explorer.graphs import invoices_file, shop_file
from tests.servers.open import Stores
from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "examples" / "shop.py"


@contextmanager
def exploring(
    *arguments: str, stop: int = signal.SIGTERM, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The address that the command prints; it must end with status 0 when it is stopped."""
    if not (serving.PAGE / "index.html").exists():
        pytest.skip("the page of the explorer is not built; run: make explorer")
    command = [sys.executable, "-m", "adjoin", "explore", *arguments, "--no-browser"]
    around = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=around)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith(f"{arguments[0]} is shown at http://127.0.0.1:")
    yield said.split()[-1]
    process.send_signal(stop)
    rest, _ = process.communicate(timeout=LIMIT)
    assert (process.returncode, rest) == (0, "")


def asked(address: str, name: str, body: bytes = b"{}") -> tuple[int, dict[str, object]]:
    """What the API at an address answers."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.netloc, timeout=LIMIT)
    try:
        (token,) = parse_qs(parts.query)["token"]
        connection.request("POST", f"/api/{name}", body, {"X-Adjoin-Token": token})
        response = connection.getresponse()
        return response.status, loads(response.read())
    finally:
        connection.close()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_file_with_classes_from_another(tmp_path: Path, stop: int) -> None:
    with exploring(shop_file(tmp_path), "--models", str(MODELS), stop=stop) as address:
        status, model = asked(address, "model")
        assert (status, model["table"], model["inferred"], model["writable"]) == (200, "Shop", None, False)
        assert asked(address, "delete", b'{"handle": "Customer/\\"C1\\"", "kind": "node"}')[0] == 404


def test_a_file_without_classes_to_write(tmp_path: Path) -> None:
    path = shop_file(tmp_path)
    with exploring(path, "--write") as address:
        _, model = asked(address, "model")
        assert model["inferred"]
        assert asked(address, "delete", b'{"handle": "Customer/\\"C1\\"", "kind": "node"}')[1]["deleted"]
    with Graph(path, shop.MODELS, shop.LAYOUT) as graph:
        assert graph.get(shop.Customer, "C1") is None


def test_a_table_of_dynamodb(tmp_path: Path, servers: Stores) -> None:
    endpoint = servers.address("ministack")
    keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
    location = f"dynamodb://ExploredShop?region=us-east-1&endpoint={endpoint}"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(name, value)
        with Graph(location, shop.MODELS, shop.LAYOUT) as graph:
            graph.create_table()
            graph.put_many(shop.SAMPLE)
    for models in ([], ["--models", str(MODELS)]):
        with exploring(location, *models, environment=keys) as address:
            _, found = asked(address, "find", b'{"text": "C1"}')
            assert [node["title"] for node in found["nodes"]] == ["Ann Lee"]  # type: ignore[attr-defined]
            assert asked(address, "health")[0] == 200
            assert asked(address, "items")[0] == 200


def test_what_it_cannot_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = invoices_file(tmp_path)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "empty.py").write_text("X = 1\n")
    (tmp_path / "text.db").write_text("not a table" * 100)
    wrong: list[tuple[list[str], int, str]] = [
        ([str(tmp_path / "none.db")], 1, "does not exist; check the name"),
        ([str(tmp_path / "text.db")], 1, "text.db"),
        ([path, "--table", "None"], 1, "there is no table 'None'; choose one with --table: InvoiceAndBills"),
        ([path, "--models", str(tmp_path / "none.py")], 1, "none.py does not exist"),
        (
            [path, "--models", str(tmp_path / "broken.py")],
            1,
            "No module named 'nothing_of_this_name' (broken.py, line 1)",
        ),
        ([path, "--models", str(tmp_path / "empty.py")], 2, "has no Node or Edge classes"),
        ([path, "--models", "no_such_module"], 1, "no_such_module does not exist"),
        ([path, "--models", str(MODELS)], 1, "there is no table 'Shop'"),
        ([path, "--models", f"{MODELS}:NONE"], 2, "has no layout 'NONE'"),
        (["redis://x"], 2, "redis:// is not a location"),
    ]
    for arguments, status, said in wrong:
        assert main(["explore", *arguments, "--no-browser"]) == status
        shown = capsys.readouterr()
        assert said in shown.err
        assert shown.err.startswith("adjoin: ")
        assert shown.err.count("\n") == 1
        assert shown.out == ""


def test_a_page_that_is_not_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving.page_files, "__defaults__", (tmp_path,))
    assert main(["explore", invoices_file(tmp_path), "--no-browser"]) == 1
    assert "make explorer" in capsys.readouterr().err


def test_a_wrong_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explore", str(tmp_path / "x.db"), "--port", "99999"])
    assert "is not a port" in capsys.readouterr().err
