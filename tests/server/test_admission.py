"""Which hosts and which pages may ask: what a browser lets any web site send to this machine is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from adjoin.errors import InvalidLocation
from adjoin.server.negotiation import Admission
from adjoin.server.serving import Server, serve
from tests.server.test_protocol import ask
from tests.server.test_serving import TABLE, client

PAGE = "http://localhost:3000"
EVIL = "https://evil.example"


@pytest.fixture(scope="module")
def server(loop: None) -> Iterator[Server]:
    with serve(":memory:", allow_origins=[PAGE], allow_hosts=["host.docker.internal"]) as opened:
        yield opened


# --- origins -----------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost", "http://localhost:3000.evil.example", ""])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"method": "OPTIONS", "body": b"", "Access_Control_Request_Method": "POST"},
        {"method": "GET", "body": b""},
        # What browsers send without asking first.
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded", "body": b""},
        {"Content_Type": None, "body": b""},
        {"path": "/?X-Amz-Algorithm=a", "Authorization": None, "Content_Type": "text/plain"},
    ],
)
def test_a_page_that_was_not_allowed(server: Server, origin: str, more: dict[str, Any]) -> None:
    status, headers, content = ask(server, Origin=origin, **more)
    assert status == 403
    assert not any(name.startswith("access-control-") for name in headers)
    refused = json.loads(content)
    assert refused["__type"] == "com.amazon.coral.service#AccessDeniedException"
    assert (
        refused["message"]
        == f"pages of {origin} may not send requests; allow the origin with --allow-origin (allow_origins)"
    )


def test_an_answer_to_head_has_no_body(server: Server) -> None:
    for more in ({"Origin": EVIL}, {"Host": "evil.example"}, {}):
        status, headers, content = ask(server, "HEAD", body=b"", **more)
        assert (status, headers["content-length"], content) == (403 if more else 404, "0", b"")


def test_a_page_that_was_not_allowed_changes_nothing(server: Server) -> None:
    create: dict[str, Any] = {"X_Amz_Target": "DynamoDB_20120810.CreateTable", "body": json.dumps(TABLE).encode()}
    assert ask(server, Origin=EVIL, **create)[0] == 403
    assert ask(server, Sec_Fetch_Site="cross-site", **create)[0] == 403
    assert ask(server, Sec_Fetch_Site="same-site", **create)[0] == 403
    assert client(server).list_tables()["TableNames"] == []


def test_a_page_that_was_allowed(server: Server) -> None:
    wants = {
        "Access_Control_Request_Headers": "a, b",
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Private_Network": "true",
    }
    status, headers, content = ask(server, "OPTIONS", Origin=PAGE, body=b"", Authorization=None, **wants)
    assert (status, content) == (200, b"")
    assert headers["vary"] == "Origin"
    assert {name: value for name, value in headers.items() if name.startswith("access-control-")} == {
        "access-control-allow-origin": PAGE,
        "access-control-allow-headers": "a, b",
        "access-control-allow-methods": "POST",
        "access-control-allow-private-network": "true",
        "access-control-max-age": "172800",
    }
    status, headers, content = ask(server, Origin=PAGE, Sec_Fetch_Site="cross-site")
    assert (status, headers["access-control-allow-origin"], headers["vary"]) == (200, PAGE, "Origin")
    assert json.loads(content) == {"TableNames": []}


def test_programs_send_no_origin(server: Server) -> None:
    status, headers, _ = ask(server)
    assert status == 200
    assert "access-control-allow-origin" not in headers
    for site in ("none", "same-origin"):
        assert ask(server, "GET", Sec_Fetch_Site=site, Authorization=None)[0] == 200


def test_every_page_may_be_allowed() -> None:
    with serve(allow_origins="*") as server:
        assert ask(server, Origin=EVIL)[1]["access-control-allow-origin"] == EVIL
        assert ask(server, Origin="null")[0] == 200


def test_pages_are_refused_with_a_key_pair_too() -> None:
    with serve(access_key="AKID", secret_key="secret") as server:
        assert ask(server, Origin=EVIL)[0] == 403
        assert ask(server, Host="evil.example")[0] == 400, "which the signature decides"


# --- hosts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("127.1.2.3", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("localhost.:8000", 200),
        ("app.localhost:8000", 200),
        ("[::1]:8000", 200),
        ("host.docker.internal:8000", 200),
        ("Host.Docker.Internal.", 200),
        ("evil.example", 403),
        ("evil.example:8000", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("evil.example/127.0.0.1", 403),
        ("127.0.0.1@evil.example", 403),
        ("xlocalhost", 403),
        ("0.0.0.0:8000", 403),
        ("192.168.1.1", 403),
        ("[::]:8000", 403),
        ("x" * 1000, 403),
        ("", 403),
    ],
)
def test_which_names_it_answers_to(server: Server, host: str, status: int) -> None:
    for _ in range(2):
        answered, _, content = ask(server, Host=host)
        assert answered == status
    if status == 403:
        assert json.loads(content)["message"] == (
            f"the server does not answer as {host[:300]}; send requests to the address that it "
            "listens at, or allow the name with --allow-host (allow_hosts)"
        )
    assert ask(server, "GET", Host=host, Authorization=None)[0] == status


def test_the_address_it_listens_at_is_its_own() -> None:
    for bound in ("10.1.2.3", "db.local"):
        assert Admission(bound).is_own_host(bound.encode() + b":8000")
    assert Admission("::1").is_own_host(b"[::1]:8000")
    assert not Admission("127.0.0.1").is_own_host(b"10.1.2.3")


def test_every_name_is_good_where_a_signature_tells_who_asks() -> None:
    assert Admission("0.0.0.0", signed=True).is_own_host(b"db:8000")
    assert Admission(hosts=["*"]).is_own_host(b"anything")


def test_hosts_that_were_looked_at_are_not_kept_for_ever() -> None:
    admission = Admission()
    for number in range(1000):
        admission.is_own_host(b"%d.example" % number)
    assert admission.is_own_host.cache_info().currsize <= 64


@pytest.mark.parametrize("origin", ["localhost:3000", "http://", "http://a/b", "http://a?b", "//a", "", "http://b@a"])
def test_what_is_no_origin(origin: str) -> None:
    with pytest.raises(InvalidLocation, match="is not an origin to allow; write one as in http://localhost:3000"):
        serve(allow_origins=[origin])


@pytest.mark.parametrize("host", ["http://a", "a/b", "", "a b"])
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(InvalidLocation, match="is not a host to allow"):
        serve(allow_hosts=[host])


def test_origins_and_hosts_as_people_write_them() -> None:
    admission = Admission(hosts=["DB.example:8000"], origins=["HTTP://Localhost:3000/"])
    assert admission.is_own_host(b"db.example")
    assert admission.takes_origin("http://localhost:3000")
    assert not admission.takes_origin("http://localhost:3001")
