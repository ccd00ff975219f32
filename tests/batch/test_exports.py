"""Exports in DynamoDB's format: written, read back, and refused where they are not whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from adjoin import InvalidExport, NotFound, NotSupported
from adjoin.batch.exports import FILES, SUMMARY, lines_of, open_export, write_export

ITEMS = [b'{"PK":{"S":"A%d"},"n":{"N":"%d"}}' % (number, number) for number in range(25)]


def pieces(size: int = 4) -> Any:
    return (ITEMS[start : start + size] for start in range(0, len(ITEMS), size))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    told: list[int] = []
    written = write_export(pieces(), tmp_path, "Education", items_a_file=10, progress=told.append)
    assert told[-1] == written.items == 25
    assert len(written.files) == 3
    export = open_export(tmp_path)
    assert export == written
    assert export.table == "Education"
    found = [json.loads(line)["Item"] for line in lines_of(export.files)]
    assert found == [json.loads(item) for item in ITEMS]


def test_the_files_are_those_of_the_service(tmp_path: Path) -> None:
    """As its documentation shows them: "DynamoDB table export output format"."""
    export = write_export(pieces(), tmp_path, "Education")
    place = Path(export.place)
    assert place.parent == tmp_path / "AWSDynamoDB"
    summary = json.loads((place / SUMMARY).read_text())
    assert summary["version"] == "2020-06-30"
    assert summary["itemCount"] == 25
    assert (summary["outputFormat"], summary["exportType"]) == ("DYNAMODB_JSON", "FULL_EXPORT")
    assert summary["manifestFilesS3Key"] == f"AWSDynamoDB/{place.name}/manifest-files.json"
    (line,) = (place / FILES).read_text().splitlines()
    entry = json.loads(line)
    assert entry.keys() == {"itemCount", "md5Checksum", "etag", "dataFileS3Key"}
    assert entry["dataFileS3Key"].startswith(f"AWSDynamoDB/{place.name}/data/")
    assert (place / "_started").read_bytes() == b""
    with gzip.open(export.files[0]) as lines:
        assert json.loads(next(lines)) == {"Item": {"PK": {"S": "A0"}, "n": {"N": "0"}}}


def test_an_empty_table_has_a_file_too(tmp_path: Path) -> None:
    export = write_export(iter(()), tmp_path, "Nothing")
    assert (export.items, len(export.files)) == (0, 1)
    assert list(lines_of(open_export(export.place).files)) == []


def test_the_folder_may_be_any_of_those_above(tmp_path: Path) -> None:
    export = write_export(pieces(), tmp_path, "T")
    for folder in (tmp_path, tmp_path / "AWSDynamoDB", export.place):
        assert open_export(folder) == export
    write_export(pieces(), tmp_path, "T")
    with pytest.raises(NotFound, match="has several exports"):
        open_export(tmp_path)
    with pytest.raises(NotFound, match="has no export"):
        open_export(tmp_path.parent)
    with pytest.raises(NotFound, match="does not exist; name the folder of an export"):
        open_export(tmp_path / "missing")


def test_a_manifest_may_be_named_instead_of_its_folder(tmp_path: Path) -> None:
    export = write_export(pieces(), tmp_path, "T")
    for name in (SUMMARY, FILES):
        assert open_export(f"{export.place}/{name}") == export


def changed(place: str, **values: Any) -> None:
    """Another summary, with a checksum that fits it."""
    path = Path(place) / SUMMARY
    summary = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps(summary))
    path.with_suffix(".checksum").unlink()


def test_what_is_not_whole_is_refused(tmp_path: Path) -> None:
    export = write_export(pieces(), tmp_path, "T", items_a_file=10)
    data = Path(export.files[1])
    content = data.read_bytes()
    data.write_bytes(content[:-1] + b"?")
    with pytest.raises(InvalidExport, match=r"does not match its checksum; copy the export again"):
        open_export(tmp_path)
    assert open_export(tmp_path, check=False) == export
    data.unlink()
    with pytest.raises(InvalidExport, match="is missing"):
        open_export(tmp_path)
    data.write_bytes(content)
    assert open_export(tmp_path) == export
    (Path(export.place) / FILES).write_text("")
    with pytest.raises(InvalidExport, match=r"manifest-files\.json does not match its checksum"):
        open_export(tmp_path)
    (Path(export.place) / "manifest-files.checksum").unlink()
    with pytest.raises(InvalidExport, match="the files have 0 items, but the summary says 25"):
        open_export(tmp_path)
    (Path(export.place) / FILES).unlink()
    with pytest.raises(InvalidExport, match="has no manifest-files"):
        open_export(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"nothing",
        b'{"itemCount":25,"md5Checksum":"x"}',
        b'{"itemCount":"25","md5Checksum":"x","dataFileS3Key":"data/x.json.gz"}',
        b'{"itemCount":25,"md5Checksum":null,"dataFileS3Key":"data/x.json.gz"}',
        b"\xff\xfe",
    ],
)
def test_a_manifest_that_tells_no_data_files_is_refused(tmp_path: Path, line: bytes) -> None:
    place = Path(write_export(pieces(), tmp_path, "T").place)
    (place / FILES).write_bytes(line)
    (place / "manifest-files.checksum").unlink()
    with pytest.raises(InvalidExport, match=r"manifest-files\.json (has a line without a data file|is not text)"):
        open_export(tmp_path)


def test_what_a_summary_leaves_open_is_as_it_was_before_there_were_others(tmp_path: Path) -> None:
    export = write_export(pieces(), tmp_path, "T")
    changed(export.place, outputFormat=None, exportType=None)
    assert open_export(tmp_path) == export


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"outputFormat": "ION"}, "in the format ION"),
        ({"exportType": "INCREMENTAL_EXPORT"}, "has the type INCREMENTAL_EXPORT"),
    ],
)
def test_other_exports_are_refused_by_name(tmp_path: Path, values: dict[str, str], message: str) -> None:
    export = write_export(pieces(), tmp_path, "T")
    changed(export.place, **values)
    with pytest.raises(NotSupported, match=message):
        open_export(tmp_path)
