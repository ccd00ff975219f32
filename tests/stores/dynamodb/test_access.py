"""Credentials, regions and endpoints: from the environment, from files, and from servers that provide them."""

from __future__ import annotations

import datetime as dt
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from adjoin import Graph, InvalidCredentials, InvalidLocation
from adjoin.stores.dynamodb.access import LOCAL_REGION, Credentials, ServiceAccess
from tests.models import SCHOOL, Course
from tests.stores.dynamodb.misbehaving import EXPIRED_TOKEN, MisbehavingServer, error, wrong_clock
from tests.waiting import LIMIT

LOCAL = "http://127.0.0.1:8000"
Files = Callable[[str, str], None]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """Writes the two files of AWS's configuration, credentials first."""

    def write(credentials: str, config: str = "") -> None:
        for name, variable, text in (
            ("credentials", "AWS_SHARED_CREDENTIALS_FILE", credentials),
            ("config", "AWS_CONFIG_FILE", config),
        ):
            (tmp_path / name).write_text(text)
            monkeypatch.setenv(variable, str(tmp_path / name))

    return write


# --- credentials that stay ---------------------------------------------------------------------


def test_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    access = ServiceAccess("eu-west-1", None, None)
    assert access.credentials() is None, "nothing is looked up on the way"
    assert access.lookup().result(LIMIT) == Credentials("key", "secret")
    assert access.credentials() == Credentials("key", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    assert ServiceAccess("eu-west-1", None, None).lookup().result(LIMIT) == Credentials("key", "secret", "token")


@pytest.mark.parametrize(
    "given",
    [
        {"AWS_ACCESS_KEY_ID": "k"},
        {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": ""},
        {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "s"},
        {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"},
        {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": ""},
        {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"},
        {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SECURITY_TOKEN": "old"},
        {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SECURITY_TOKEN": "old", "AWS_SESSION_TOKEN": "t"},
        {"AWS_ACCESS_KEY_ID": "k\n", "AWS_SECRET_ACCESS_KEY": "s"},
        {
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_CREDENTIAL_EXPIRATION": "2099-01-01T00:00:00Z",
        },
    ],
    ids=str,
)
def test_the_environment_says_the_same_with_and_without_botocore(
    given: dict[str, str], files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that says nothing about credentials, but has something in it, makes botocore look."""

    def found() -> object:
        try:
            return ServiceAccess("eu-west-1", None, None).lookup().result(LIMIT)
        except InvalidCredentials as error:
            return type(error)

    for name, value in given.items():
        monkeypatch.setenv(name, value)
    without = found()
    files("", "[profile other]\nregion = eu-west-2\n")
    assert without == found()


def test_credentials_of_a_profile(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files(
        "[default]\naws_access_key_id = d\naws_secret_access_key = ds\n"
        "[work]\naws_access_key_id = w\naws_secret_access_key = ws\naws_session_token = wt\n",
        "[profile work]\nregion = eu-central-1\n[default]\nregion = us-west-2\n",
    )
    default, work = ServiceAccess(None, None, None), ServiceAccess(None, None, "work")
    assert (default.lookup().result(LIMIT), default.region) == (Credentials("d", "ds"), "us-west-2")
    assert (work.lookup().result(LIMIT), work.region) == (Credentials("w", "ws", "wt"), "eu-central-1")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert ServiceAccess(None, None, None).lookup().result(LIMIT) == Credentials("w", "ws", "wt")


def test_a_profile_that_runs_a_program(files: Files, tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps({"Version": 1, "AccessKeyId": "p", "SecretAccessKey": "ps"}))
    files("", f"[profile program]\ncredential_process = cat {tmp_path / 'answer.json'}\n")
    assert ServiceAccess("eu-west-1", None, "program").lookup().result(LIMIT) == Credentials("p", "ps")
    files("", "[profile program]\ncredential_process = false\n")
    with pytest.raises(InvalidCredentials, match="credentials could not be loaded"):
        ServiceAccess("eu-west-1", None, "program").lookup().result(LIMIT)


@pytest.mark.parametrize("by_environment", [False, True])
def test_a_profile_that_is_not_there(monkeypatch: pytest.MonkeyPatch, by_environment: bool) -> None:
    if by_environment:
        monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(InvalidLocation, match=r"profile \(nobody\) could not be found"):
        ServiceAccess("eu-west-1", None, None if by_environment else "nobody")


def test_a_configuration_that_cannot_be_read(files: Files) -> None:
    files("", "this is no configuration")
    with pytest.raises(InvalidLocation, match="configuration cannot be used"):
        ServiceAccess("eu-west-1", None, None)


def test_no_credentials() -> None:
    with pytest.raises(InvalidCredentials, match="set AWS_ACCESS_KEY_ID"):
        ServiceAccess("eu-west-1", None, None).lookup().result(LIMIT)
    with pytest.raises(InvalidCredentials, match="set AWS_ACCESS_KEY_ID"):
        Graph("dynamodb://Nothing?region=eu-west-1", SCHOOL)


@pytest.mark.parametrize("url", [LOCAL, "http://localhost:8000", "http://[::1]:8000", "http://127.9.9.9"])
def test_a_server_on_this_machine_needs_none(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    assert ServiceAccess(None, url, None).lookup().result(LIMIT) == Credentials("local", "local")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert ServiceAccess(None, url, None).lookup().result(LIMIT) == Credentials("key", "secret")


# --- credentials that expire -------------------------------------------------------------------


class Provider(ThreadingHTTPServer):
    """Gives out credentials: those of a container at any path, of an instance at the paths of its metadata."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.lifetime = 3600.0
        self.given = 0
        self.fails = False

    def next_credentials(self) -> dict[str, Any]:
        self.given += 1
        until = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=self.lifetime)
        return {
            "Code": "Success",
            "AccessKeyId": f"key{self.given}",
            "SecretAccessKey": "secret",
            "Token": f"token{self.given}",
            "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        if self.path.endswith("/security-credentials/"):
            self._say(200, b"role")
        elif self.server.fails:
            self._say(200, b'{"Code": "Failed"}')
        else:
            self._say(200, json.dumps(self.server.next_credentials()).encode())

    def do_PUT(self) -> None:
        self._say(200, b"a token of the metadata service")

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield provider
        provider.shutdown()
        thread.join()


@pytest.fixture
def container(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{provider.url}/credentials")
    return provider


def test_credentials_of_a_container_are_asked_for_once(container: Provider) -> None:
    access = ServiceAccess("eu-west-1", None, None)
    assert access.lookup().result(LIMIT) == Credentials("key1", "secret", "token1")
    assert access.lookup().result(LIMIT) == access.credentials() == Credentials("key1", "secret", "token1")
    assert container.given == 1


def test_credentials_that_expire_are_refreshed(container: Provider) -> None:
    container.lifetime = 60
    access = ServiceAccess("eu-west-1", None, None)
    assert access.lookup().result(LIMIT).access_key == "key2", "they expired in a minute, and were refreshed at once"
    container.lifetime = 3600
    assert access.credentials() is None, "they expire soon"
    assert access.lookup().result(LIMIT) == Credentials("key3", "secret", "token3")
    assert access.credentials() == Credentials("key3", "secret", "token3")


def test_credentials_that_expire_and_cannot_be_refreshed(container: Provider) -> None:
    access = ServiceAccess("eu-west-1", None, None)
    container.lifetime = -10
    with pytest.raises(InvalidCredentials, match="expired"):
        access.lookup().result(LIMIT)


def test_credentials_of_an_instance(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", provider.url)
    access = ServiceAccess("eu-west-1", None, None)
    assert access.lookup().result(LIMIT) == Credentials("key1", "secret", "token1")
    assert access.lookup(Credentials("key1", "secret", "token1")).result(LIMIT).access_key == "key2"


def test_many_threads_look_once(container: Provider) -> None:
    access = ServiceAccess("eu-west-1", None, None)
    with ThreadPoolExecutor(8) as pool:
        first = {each.access_key for each in pool.map(lambda _: access.lookup().result(LIMIT), range(16))}
        refused = access.lookup().result(LIMIT)
        again = {each.access_key for each in pool.map(lambda _: access.lookup(refused).result(LIMIT), range(16))}
    assert (first, again, container.given) == ({"key1"}, {"key2"}, 2)


def key_of(call: Any) -> str:
    return str(call.head.split("Credential=")[1].split("/")[0])


def test_refused_as_expired_and_then_refreshed(
    container: Provider, behind: Graph, location: str, quick: None, server: MisbehavingServer, name: str
) -> None:
    with Graph(location, SCHOOL) as g:
        server.calls.clear()
        server.misbehave(EXPIRED_TOKEN)
        g.put(Course(id=name))
        g.put(Course(id=name))
        assert [key_of(call) for call in server.calls] == ["key1", "key2", "key2"]
        server.misbehave(EXPIRED_TOKEN, EXPIRED_TOKEN)
        with pytest.raises(InvalidCredentials, match="renew") as caught:
            g.put(Course(id=name))
        assert caught.value.request_id == "MISBEHAVED"
        container.fails = True
        server.misbehave(EXPIRED_TOKEN)
        with pytest.raises(InvalidCredentials, match="credentials could not be loaded"):
            g.put(Course(id=name))


def test_files_are_read_again_when_their_credentials_are_refused(
    files: Files, behind: Graph, location: str, quick: None, server: MisbehavingServer, name: str
) -> None:
    files("[default]\naws_access_key_id = old\naws_secret_access_key = s\naws_session_token = t\n", "")
    with Graph(location, SCHOOL) as g:
        files("[default]\naws_access_key_id = new\naws_secret_access_key = s\naws_session_token = t\n", "")
        server.calls.clear()
        server.misbehave(EXPIRED_TOKEN)
        g.put(Course(id=name))
        assert [key_of(call) for call in server.calls] == ["old", "new"]


def test_a_clock_that_is_wrong(behind: Graph, location: str, quick: None, server: MisbehavingServer, name: str) -> None:
    def stamp(call: Any) -> dt.datetime:
        text = next(line for line in call.head.split("\r\n") if line.startswith("X-Amz-Date:")).split(": ")[1]
        return dt.datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)

    with Graph(location, SCHOOL) as g:
        server.calls.clear()
        server.misbehave(wrong_clock(7200))
        g.put(Course(id=name))
        g.put(Course(id=name))
        first, second, third = map(stamp, server.calls)
        assert abs((second - first).total_seconds() - 7200) < 60
        assert abs((third - first).total_seconds() - 7200) < 60
        server.misbehave(wrong_clock(0), wrong_clock(0))
        with pytest.raises(InvalidCredentials, match="check the secret key and the clock"):
            g.put(Course(id=name))
        # A date that is none is no help, and no further harm.
        server.misbehave(error(400, "InvalidSignatureException"))
        g.put(Course(id=name))


# --- regions and endpoints ---------------------------------------------------------------------


def test_where_the_region_comes_from(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidLocation, match=r"no region is set; .*region=eu-west-1"):
        ServiceAccess(None, None, None)
    assert ServiceAccess(None, LOCAL, None).region == LOCAL_REGION
    files("", "[default]\nregion = us-west-2\n")
    assert ServiceAccess(None, None, None).region == "us-west-2"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-2")
    assert ServiceAccess(None, None, None).region == "eu-west-2"
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    assert ServiceAccess(None, None, None).region == "eu-west-3"
    assert ServiceAccess("eu-west-1", None, None).region == "eu-west-1"


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "dynamodb.eu-west-1.amazonaws.com"),
        ("us-gov-west-1", "dynamodb.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "dynamodb.cn-north-1.amazonaws.com.cn"),
        ("us-iso-east-1", "dynamodb.us-iso-east-1.c2s.ic.gov"),
    ],
)
def test_endpoints_of_regions(region: str, host: str) -> None:
    access = ServiceAccess(region, None, None)
    assert (access.table_endpoint.url, access.table_endpoint.host) == (f"https://{host}/", host)
    assert (access.stream_endpoint.url, access.stream_endpoint.host) == (f"https://streams.{host}/", f"streams.{host}")


def test_all_regions_that_botocore_knows(files: Files) -> None:
    for partition in botocore.session.Session().get_data("partitions")["partitions"]:
        for region in partition["regions"]:
            access = ServiceAccess(region, None, None)
            assert access.table_endpoint.host == f"dynamodb.{region}.{partition['outputs']['dnsSuffix']}"


def test_the_environment_names_region_and_endpoints_with_and_without_botocore(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> tuple[str, str, str]:
        access = ServiceAccess(None, None, None)
        return access.region, access.table_endpoint.url, access.stream_endpoint.url

    for settings in (
        {"AWS_DEFAULT_REGION": "eu-west-2"},
        {"AWS_REGION": "eu-west-3"},
        {"AWS_ENDPOINT_URL": "http://all:3"},
        {"AWS_ENDPOINT_URL_DYNAMODB": "http://tables:4", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": ""},
        {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "no"},
        {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "True"},
    ):
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
        without = found()
        files("", "[profile other]\nregion = us-west-2\n")
        assert without == found()


@pytest.mark.parametrize("region", ["nowhere", "eu west 1", "x/y"])
def test_regions_that_are_none(region: str) -> None:
    with pytest.raises(InvalidLocation, match="is not a region of AWS"):
        ServiceAccess(region, None, None)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://[::1", "http://x:y"]
)
def test_endpoints_that_are_none(url: str) -> None:
    with pytest.raises(InvalidLocation, match="is not an endpoint"):
        ServiceAccess(None, url, None)


def endpoints(given: str | None = None) -> tuple[str, str]:
    access = ServiceAccess("eu-west-1", given, None)
    return access.table_endpoint.url, access.stream_endpoint.url


def test_where_endpoints_come_from(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files("", "[default]\nendpoint_url = http://profile:1\n")
    assert endpoints() == ("http://profile:1/", "http://profile:1/")
    files(
        "",
        "[default]\nendpoint_url = http://profile:1\nservices = mine\n"
        "[services mine]\ndynamodb =\n  endpoint_url = http://service:2\n",
    )
    assert endpoints() == ("http://service:2/", "http://profile:1/")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all:3")
    assert endpoints() == ("http://all:3/", "http://all:3/")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://tables:4")
    assert endpoints() == ("http://tables:4/", "http://all:3/")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "http://streams:5")
    assert endpoints() == ("http://tables:4/", "http://streams:5/")
    assert endpoints("http://given:6") == ("http://given:6/", "http://given:6/")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert endpoints()[0] == "https://dynamodb.eu-west-1.amazonaws.com/"
    assert endpoints("http://given:6") == ("http://given:6/", "http://given:6/")


def test_a_table_server_of_the_environment_also_has_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", LOCAL)
    assert endpoints() == (f"{LOCAL}/", f"{LOCAL}/")
