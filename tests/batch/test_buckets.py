"""Exports in a bucket, with MiniStack's S3 in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from adjoin import Graph, InvalidExport, NotFound, ServiceUnreachable
from adjoin.batch.engines import DuckDBEngine
from adjoin.batch.exports import FILES, Export, lines_of, write_export
from adjoin.batch.sources import dump_of
from tests.batch.graphs import everything, filled
from tests.batch.models import MODELS
from tests.servers.open import Stores

BUCKET = "exports-of-tables"
ONLY = ["AUTHOR.pages"]


@pytest.fixture
def client(servers: Stores, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    address = servers.address("ministack")
    environment = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=address, region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    yield client
    for each in client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
        client.delete_object(Bucket=BUCKET, Key=each["Key"])
    client.delete_bucket(Bucket=BUCKET)
    client.close()


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph(":memory:", MODELS) as opened:
        opened.put_many(filled(8).all)
        yield opened


def sent(client: Any, graph: Graph, folder: Path, prefix: str = "nightly") -> Export:
    """Writes an export, and sends it to the bucket as the service leaves it there."""
    export = write_export(dump_of(graph._store, graph._layout.table).lines(), folder, "T", items_a_file=50)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            client.upload_file(str(path), BUCKET, f"{prefix}/{path.relative_to(folder)}")
    return export


def test_an_export_in_a_bucket_is_read(client: Any, graph: Graph, tmp_path: Path) -> None:
    written = sent(client, graph, tmp_path)
    with DuckDBEngine(threads=1) as engine:
        expected = everything(engine, written, graph._layout, ONLY)
        home = f"s3://{BUCKET}/nightly/AWSDynamoDB/{written.id}"
        for place in (f"s3://{BUCKET}/nightly", f"{home}/", f"{home}/manifest-summary.json"):
            export = engine.export(place)
            assert (export.items, export.identity) == (written.items, written.identity)
            assert sorted(lines_of(export.files)) == sorted(lines_of(written.files))
        assert everything(engine, export, graph._layout, ONLY) == expected
        copies = list(engine._folder.iterdir())
    assert not any(copy.exists() for copy in copies)


def test_what_is_wrong_with_it_is_told(client: Any, graph: Graph, tmp_path: Path) -> None:
    written = sent(client, graph, tmp_path)
    with DuckDBEngine(threads=1) as engine:
        with pytest.raises(NotFound, match="has no export"):
            engine.export(f"s3://{BUCKET}/weekly")
        with pytest.raises((NotFound, ServiceUnreachable), match="s3://no-such-bucket/x"):
            engine.export("s3://no-such-bucket/x")
        key = f"nightly/AWSDynamoDB/{written.id}"
        data = f"{key}/data/{Path(written.files[0]).name}"
        client.put_object(Bucket=BUCKET, Key=data, Body=b"other")
        with pytest.raises(InvalidExport, match="does not match its checksum"):
            engine.export(f"s3://{BUCKET}/nightly")
        client.delete_object(Bucket=BUCKET, Key=data)
        with pytest.raises(InvalidExport, match=f"the data file .*{Path(data).name} is missing"):
            engine.export(f"s3://{BUCKET}/nightly")
        client.delete_object(Bucket=BUCKET, Key=f"{key}/{FILES}")
        with pytest.raises(InvalidExport, match=f"has no {FILES}"):
            engine.export(f"s3://{BUCKET}/nightly")


def test_of_several_one_has_to_be_named(client: Any, graph: Graph, tmp_path: Path) -> None:
    sent(client, graph, tmp_path / "one")
    sent(client, graph, tmp_path / "two")
    with DuckDBEngine(threads=1) as engine, pytest.raises(NotFound, match="has several exports"):
        engine.export(f"s3://{BUCKET}/nightly")
