"""The pytest plugin: the fixture `adjoin_dynamodb` gives each test its own empty DynamoDB in a few milliseconds.

    def test_orders(adjoin_dynamodb):
        orders = boto3.resource("dynamodb").create_table(...)

One server per pytest process starts with the first test that uses the fixture. Every test gets a fresh
store in memory behind it. The address stays the same, so clients that a program keeps continue to work.

pytest loads this module in every environment that has adjoin. Therefore it is a separate package, and
imports nothing but pytest until a test uses the fixture.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from adjoin.server.serving import Server

__all__ = ["DynamoDB", "adjoin_dynamodb"]

REGION = "us-east-1"
KEY = "adjoin"
"""Both the access key and the secret key; the server accepts any."""

_OF_THIS_MACHINE = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_USE_DUALSTACK_ENDPOINT",
)
"""Settings that would send a client elsewhere, or keep it from starting."""


class DynamoDB:
    """The value of the fixture: the server's address, and clients that are closed after the test."""

    region = REGION
    access_key = KEY
    secret_key = KEY

    def __init__(self, endpoint: str, session: _Session, closing: ExitStack) -> None:
        self.endpoint = endpoint
        self._session = session
        self._closing = closing

    @property
    def kwargs(self) -> dict[str, str]:
        """Arguments for any function that makes a client: `boto3.client("dynamodb", **adjoin_dynamodb.kwargs)`."""
        return {
            "endpoint_url": self.endpoint,
            "region_name": self.region,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The variables that send AWS SDKs of any language to this server. They are set while the test runs."""
        return {
            "AWS_ENDPOINT_URL_DYNAMODB": self.endpoint,
            "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_REGION": self.region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def client(self, service: str = "dynamodb", **options: Any) -> Any:
        """A boto3 client for "dynamodb" or "dynamodbstreams"."""
        client = self._session.get().client(service, **{**self.kwargs, **options})
        self._closing.callback(client.close)
        return client

    def resource(self, **options: Any) -> Any:
        """A boto3 resource for DynamoDB."""
        resource = self._session.get().resource("dynamodb", **{**self.kwargs, **options})
        self._closing.callback(resource.meta.client.close)
        return resource

    def __repr__(self) -> str:
        return f"<adjoin_dynamodb at {self.endpoint}>"


# --- fixtures ----------------------------------------------------------------------------------


@pytest.fixture
def adjoin_dynamodb(_adjoin_server: tuple[Server, _Session]) -> Iterator[DynamoDB]:
    """An empty DynamoDB for this test alone: `.endpoint`, `.kwargs`, `.client()`, `.resource()`.

    While the test runs, environment variables send clients without an explicit endpoint to it too.
    """
    from adjoin.stores.sqlite import SQLiteStore

    server, session = _adjoin_server
    server.switch(SQLiteStore(":memory:"))
    # Not the fixture `monkeypatch`, because the test may undo that one.
    with pytest.MonkeyPatch.context() as patch, ExitStack() as closing:
        given = DynamoDB(server.endpoint, session, closing)
        for name in _OF_THIS_MACHINE:
            patch.delenv(name, raising=False)
        for name, value in (given.environment | _no_proxy()).items():
            patch.setenv(name, value)
        closing.enter_context(session.as_default())
        yield given


@pytest.fixture(scope="session")
def _adjoin_server() -> Iterator[tuple[Server, _Session]]:
    from adjoin.server.serving import serve

    with serve() as server:
        yield server, _Session()


def _no_proxy() -> dict[str, str]:
    """Keeps requests to this machine away from a configured proxy."""
    excepted = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    value = f"{excepted},127.0.0.1" if excepted else "127.0.0.1"
    return {"no_proxy": value, "NO_PROXY": value}


class _Session:
    """A boto3 session that all tests share: it keeps the service model, which takes longest to load."""

    def __init__(self) -> None:
        self._made: Any = None

    def get(self) -> Any:
        if self._made is None:
            import boto3

            self._made = boto3.Session()
        return self._made

    @contextmanager
    def as_default(self) -> Iterator[None]:
        """Makes this session the default one, for `boto3.client` in a test.

        So a test does not see the credentials of this machine, and the test's credentials do not leak into others.
        """
        boto3 = sys.modules.get("boto3")
        before = getattr(boto3, "DEFAULT_SESSION", None)
        if boto3 is not None:
            boto3.DEFAULT_SESSION = self.get()  # type: ignore[attr-defined]
        yield
        if "boto3" in sys.modules:
            sys.modules["boto3"].DEFAULT_SESSION = before  # type: ignore[attr-defined]
