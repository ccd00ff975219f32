"""Our signatures beside botocore's, on generated requests."""

from __future__ import annotations

import datetime as dt
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import example, given
from hypothesis import strategies as st

from adjoin.errors import InvalidLocation
from adjoin.stores.dynamodb.access import CONTENT_TYPE, Credentials, endpoint_at

SECRET_TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)
OPERATIONS = [
    "DynamoDB_20120810.GetItem",
    "DynamoDB_20120810.TransactWriteItems",
    "DynamoDBStreams_20120810.GetRecords",
]
ENDPOINTS = [
    "https://dynamodb.eu-west-1.amazonaws.com",
    "https://dynamodb.eu-west-1.amazonaws.com:443/",
    "http://127.0.0.1:8000",
    "http://127.0.0.1:80/",
    "http://[::1]:8000",
    "http://localhost:4566/a/path",
    "http://localhost:4566/a path/with~tilde",
]


def botocore_headers(
    url: str, credentials: Credentials, region: str, target: str, body: bytes, now: dt.datetime
) -> dict[str, str]:
    request = AWSRequest("POST", url, headers={"Content-Type": CONTENT_TYPE, "X-Amz-Target": target}, data=body)
    theirs = BotocoreCredentials(credentials.access_key, credentials.secret_key, credentials.token)
    with patch("botocore.auth.get_current_datetime", return_value=now):
        SigV4Auth(theirs, "dynamodb", region).add_auth(request)
    return {name.title(): value for name, value in request.headers.items()}


@given(
    url=st.sampled_from(ENDPOINTS),
    access_key=SECRET_TEXT,
    secret_key=SECRET_TEXT,
    token=st.none() | SECRET_TEXT,
    region=st.sampled_from(["us-east-1", "eu-central-2", "cn-north-1"]),
    target=st.sampled_from(OPERATIONS),
    body=st.binary(max_size=200),
    now=st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2099, 12, 31)),
)
@example(ENDPOINTS[0], "AKID", "secret", None, "us-east-1", OPERATIONS[0], b"{}", dt.datetime(2026, 1, 1))
def test_botocore_signs_the_same(
    url: str,
    access_key: str,
    secret_key: str,
    token: str | None,
    region: str,
    target: str,
    body: bytes,
    now: dt.datetime,
) -> None:
    credentials = Credentials(access_key, secret_key, token)
    signer = endpoint_at(url, region).signer
    ours = signer.headers(credentials, target, body, now.replace(tzinfo=dt.UTC).timestamp())
    theirs = botocore_headers(url, credentials, region, target, body, now.replace(tzinfo=dt.UTC, microsecond=0))
    assert ours == {name: theirs[name] for name in ours}
    assert set(theirs) <= set(ours) | {"Host"}


def test_a_signer_follows_the_day_and_the_secret() -> None:
    signer = endpoint_at(ENDPOINTS[0], "us-east-1").signer
    day = 86400.0
    for now in (0.0, day, 0.0):
        for secret in ("one", "two", "one"):
            credentials = Credentials("AKID", secret)
            fresh = endpoint_at(ENDPOINTS[0], "us-east-1").signer
            assert signer.headers(credentials, "T", b"", now) == fresh.headers(credentials, "T", b"", now)


@pytest.mark.parametrize("url", ["ftp://x", "127.0.0.1:8000", "http://", ""])
def test_what_is_no_endpoint(url: str) -> None:
    with pytest.raises(InvalidLocation, match="is not an endpoint"):
        endpoint_at(url, "us-east-1")
