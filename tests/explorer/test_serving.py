"""Who is answered: nobody without the token, no other page, and no other name of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from orjson import loads

from adjoin.errors import InvalidLocation, NotFound
from adjoin.explorer import ExplorerServer, open_explored
from adjoin.explorer import serving as module
from adjoin.explorer.serving import page_files
from tests.explorer.graphs import invoices_file, sent, serving


@pytest.fixture(scope="module", autouse=True)
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A page of two files: the server is the same with the built one."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text("<p>page")
    (folder / "explorer.js").write_text("1")
    (folder / ".built").write_text("not a file of the page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAGE", folder)
        patch.setattr(page_files, "__defaults__", (folder,))
        yield


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, page: None) -> Iterator[ExplorerServer]:
    with serving(invoices_file(tmp_path_factory.mktemp("table"))) as server:
        yield server


def test_the_page_comes_with_the_token_in_its_address(server: ExplorerServer) -> None:
    response, body = sent(server, "GET", server.address.removeprefix(server.endpoint))
    assert (response.status, body) == (200, b"<p>page")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?other=1", "/index.html"])
def test_without_the_token_there_is_no_page(server: ExplorerServer, path: str) -> None:
    response, body = sent(server, "GET", path)
    assert response.status == 403
    assert b"token" in body


def test_its_files_hold_nothing_of_the_table_and_need_no_token(server: ExplorerServer) -> None:
    response, body = sent(server, "GET", "/explorer.js")
    assert (response.status, body) == (200, b"1")
    assert response.headers["Content-Type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/.built", "/../serving.py", "/%2e%2e/serving.py", "/missing.js", "//etc/passwd"])
def test_other_files_are_not_there(server: ExplorerServer, path: str) -> None:
    response, _ = sent(server, "GET", path)
    assert response.status == 404


def test_the_api_takes_the_token_in_a_header(server: ExplorerServer) -> None:
    response, body = sent(server, "POST", "/api/model", b"{}", X_Adjoin_Token=server.token)
    assert response.status == 200
    assert loads(body)["table"] == "InvoiceAndBills"


@pytest.mark.parametrize("headers", [{}, {"X_Adjoin_Token": "wrong"}, {"X_Adjoin_Token": ""}, {"Cookie": "token"}])
def test_the_api_refuses_others(server: ExplorerServer, headers: dict[str, str]) -> None:
    response, body = sent(server, "POST", f"/api/model?token={server.token}", b"{}", **headers)
    assert response.status == 403
    assert b"InvoiceAndBills" not in body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_no_other_name_of_the_machine_is_answered(server: ExplorerServer, host: str) -> None:
    """A page can point its own name to the loopback address, and would then be of the same origin."""
    for method, path in (("GET", f"/?token={server.token}"), ("POST", "/api/model"), ("GET", "/explorer.js")):
        response, body = sent(server, method, path, Host=host, X_Adjoin_Token=server.token)
        assert response.status in (400, 403), body


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_no_other_page_is_answered(server: ExplorerServer, origin: str) -> None:
    response, _ = sent(server, "POST", "/api/model", b"{}", Origin=origin, X_Adjoin_Token=server.token)
    assert response.status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_that_does_not_say_its_origin_is_refused(server: ExplorerServer, site: str) -> None:
    response, _ = sent(server, "POST", "/api/model", b"{}", Sec_Fetch_Site=site, X_Adjoin_Token=server.token)
    assert response.status == 403


def test_the_page_itself_is_answered(server: ExplorerServer) -> None:
    headers = {"Origin": server.endpoint, "Sec_Fetch_Site": "same-origin", "X_Adjoin_Token": server.token}
    response, _ = sent(server, "POST", "/api/model", b"{}", **headers)
    assert response.status == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/model", b"{", 400),
        ("POST", "/api/model", b"[]", 400),
        ("POST", "/api/model", b'{"a": 1}', 400),
        ("POST", "/api/node", b"{}", 400),
        ("POST", "/api/missing", b"{}", 404),
        ("POST", "/api/__class__", b"{}", 404),
        ("GET", "/api/model", b"", 404),
        ("POST", "/", b"", 404),
        ("DELETE", "/explorer.js", b"", 404),
    ],
)
def test_what_it_does_not_know(server: ExplorerServer, method: str, path: str, body: bytes, status: int) -> None:
    response, _ = sent(server, method, path, body, X_Adjoin_Token=server.token)
    assert response.status == status


def test_tokens_are_random(tmp_path: Path) -> None:
    path = invoices_file(tmp_path)
    with serving(path) as one, serving(path) as other:
        assert one.token != other.token
        assert len(one.token) >= 32


def test_a_port_that_is_taken(server: ExplorerServer, tmp_path: Path) -> None:
    explored = open_explored(invoices_file(tmp_path))
    port = int(server.endpoint.rpartition(":")[2])
    with pytest.raises(InvalidLocation, match="cannot listen at"):
        ExplorerServer(explored, port)
    explored.close()


def test_a_page_that_is_not_built_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="make explorer"):
        page_files(tmp_path)
