"""DynamoDB's export to S3, read and written: a folder of manifests and gzipped lines of DynamoDB JSON.

    <folder>/AWSDynamoDB/<export id>/manifest-summary.json     what was exported, and how many items
                                     manifest-files.json       one line per data file, with its checksum
                                     data/*.json.gz            {"Item": {"PK": {"S": "…"}, …}} in each line

Only full exports in DynamoDB JSON are read; other formats and types are refused by name. This module does not know
engines: it returns the names of the data files, after it has checked them.
"""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import hashlib
import io
import os
import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from orjson import JSONDecodeError, dumps, loads

from adjoin.dataclass import dataclass
from adjoin.errors import AlreadyExists, InvalidExport, NotFound, NotSupported

ReadText: TypeAlias = Callable[[str], str | None]
"""Returns the text of a file of the export by its full name, or None if the file does not exist."""

SUMMARY, FILES = "manifest-summary.json", "manifest-files.json"
ROOT = "AWSDynamoDB"
_REMOTE = ("s3://", "s3a://")
CHECKSUMS = (".checksum", ".md5")
"""Endings of the checksum file beside a manifest: AWS's documentation says one, real exports have the other."""
_ENTRY = {"itemCount": int, "md5Checksum": str, "dataFileS3Key": str}
"""The fields that the manifest must have for each data file, with their types."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Export:
    """A full export: the names of its data files, as an engine opens them, and the facts in its manifests."""

    place: str
    files: tuple[str, ...]
    items: int
    table: str
    """The table that was exported; empty if the manifests do not say."""
    id: str
    at: float = 0.0
    """The instant that the export shows, in seconds since 1970; 0 if the manifests do not say."""

    @property
    def identity(self) -> str:
        return f"{self.table}/{self.id}"


def is_remote(place: str | os.PathLike[str]) -> bool:
    return os.fspath(place).startswith(_REMOTE)


def local_text(name: str) -> str | None:
    path = Path(name)
    try:
        # Not read_text, which would change line ends: the checksum is of the bytes.
        return path.read_bytes().decode() if path.is_file() else None
    except UnicodeDecodeError:
        raise InvalidExport(f"{name} is not text; copy the export again") from None


def open_export(place: str | os.PathLike[str], read: ReadText = local_text, *, check: bool = True) -> Export:
    """The export in a folder: the folder of its manifests, or one above it that holds a single export.

    A manifest may be named instead of its folder. Files on this machine are compared with their checksums; a file
    that is missing or differs raises `InvalidExport`.
    """
    folder = folder_of(place)
    if not is_remote(folder):
        folder = str(_only_export(Path(folder)))
    summary = _loaded(folder, SUMMARY, read)
    _require_known(folder, summary)
    listed = read(f"{folder}/{FILES}")
    if listed is None:
        raise InvalidExport(f"{folder} has no {FILES}: the export is unfinished or incomplete; export again")
    _check_text(folder, FILES, listed, read)
    entries = [_entry(folder, line) for line in listed.splitlines() if line.strip()]
    files = tuple(_place_of(folder, entry, summary) for entry in entries)
    total = sum(entry["itemCount"] for entry in entries)
    if total != summary["itemCount"]:
        raise InvalidExport(
            f"{folder}: the files have {total:,} items, but the summary says {summary['itemCount']:,}; export again"
        )
    if check and not is_remote(folder):
        for name, entry in zip(files, entries, strict=True):
            _check_file(name, entry["md5Checksum"])
    table = str(summary.get("tableArn") or "").partition(":table/")[2]
    return Export(folder, files, total, table, folder.rpartition("/")[2], _time_in(summary.get("exportTime")))


def _time_in(told: Any) -> float:
    try:
        return dt.datetime.fromisoformat(told).timestamp()
    except (TypeError, ValueError):
        return 0.0


def folder_of(place: str | os.PathLike[str]) -> str:
    """The folder of an export, given the folder itself or one of the manifests in it."""
    folder = os.fspath(place).rstrip("/")
    head, _, name = folder.rpartition("/")
    return head if name in (SUMMARY, FILES) else folder


def _only_export(folder: Path) -> Path:
    if not folder.is_dir():
        raise NotFound(f"the folder {folder} does not exist; name the folder of an export")
    if (folder / SUMMARY).is_file():
        return folder
    above = folder if folder.name == ROOT else folder / ROOT
    found = sorted(path.parent for path in above.glob(f"*/{SUMMARY}")) if above.is_dir() else []
    if not found:
        raise NotFound(f"{folder} has no export: it has no {ROOT}/…/{SUMMARY}; name the right folder")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise NotFound(f"{folder} has several exports ({names}); name the folder of one of them")
    return found[0]


def _loaded(folder: str, name: str, read: ReadText) -> dict[str, Any]:
    text = read(f"{folder}/{name}")
    if text is None:
        raise NotFound(f"{folder} has no {name}; name the folder of a finished export")
    _check_text(folder, name, text, read)
    try:
        value = loads(text)
    except JSONDecodeError:
        raise InvalidExport(f"{folder}/{name} is not JSON; export again") from None
    if not isinstance(value, dict) or not isinstance(value.get("itemCount"), int):
        raise InvalidExport(f"{folder}/{name} does not say how many items there are; export again")
    return value


def _require_known(folder: str, summary: dict[str, Any]) -> None:
    form, kind = summary.get("outputFormat") or "DYNAMODB_JSON", summary.get("exportType") or "FULL_EXPORT"
    if form != "DYNAMODB_JSON":
        raise NotSupported(f"{folder} is in the format {form}; export in DynamoDB JSON")
    if kind != "FULL_EXPORT":
        raise NotSupported(
            f"{folder} has the type {kind}, which has changes and not the whole table; make a full export"
        )


def _entry(folder: str, line: str) -> dict[str, Any]:
    try:
        entry = loads(line)
    except JSONDecodeError:
        entry = None
    if not isinstance(entry, dict) or any(not isinstance(entry.get(name), kind) for name, kind in _ENTRY.items()):
        raise InvalidExport(
            f"{folder}/{FILES} has a line without a data file, its checksum and its item count: {line[:60]!r}; "
            f"export again"
        )
    return entry


def _place_of(folder: str, entry: dict[str, Any], summary: dict[str, Any]) -> str:
    """The name of a data file. It is beside the manifests, even if the export was moved."""
    key = str(entry["dataFileS3Key"])
    name = key.rpartition("/")[2]
    # The manifests of an export in S3 may have been copied to another place without the data.
    if is_remote(folder) and summary.get("s3Bucket") and not folder.endswith(key.rpartition("/data/")[0]):
        return f"{folder.partition('://')[0]}://{summary['s3Bucket']}/{key}"
    return f"{folder}/data/{name}"


def _check_text(folder: str, name: str, text: str, read: ReadText) -> None:
    stem = name.removesuffix(".json")
    for ending in CHECKSUMS:
        told = read(f"{folder}/{stem}{ending}")
        if told is not None and told.strip() != _digest_text(hashlib.md5(text.encode(), usedforsecurity=False)):
            raise InvalidExport(f"{folder}/{name} does not match its checksum; copy the export again")


def _check_file(name: str, told: str) -> None:
    # The export format uses MD5. Without the flag, Python builds for FIPS refuse it.
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with open(name, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except FileNotFoundError:
        raise InvalidExport(f"the data file {name} is missing; copy the export again") from None
    if _digest_text(digest) != told:
        raise InvalidExport(f"the data file {name} does not match its checksum; copy the export again")


def _digest_text(digest: Any) -> str:
    return base64.b64encode(digest.digest()).decode()


# --- writing -----------------------------------------------------------------------------------

ITEMS_A_FILE = 500_000
_LEVEL = 1
"""gzip's fastest level: files a third smaller would take five times as long to write."""


def write_export(
    pieces: Iterable[list[bytes]],
    folder: str | os.PathLike[str],
    table: str,
    *,
    items_a_file: int = ITEMS_A_FILE,
    progress: Callable[[int], None] | None = None,
) -> Export:
    """Writes items in DynamoDB JSON as an export of a table. The summary comes last: it marks a complete export."""
    now = dt.datetime.now(dt.UTC)
    id = f"{int(now.timestamp() * 1000):014}-{secrets.token_hex(4)}"
    prefix = f"{ROOT}/{id}"
    place = Path(folder) / ROOT / id
    if place.exists():
        raise AlreadyExists(f"{place} already exists; try again")
    if Path(folder).is_file():
        raise AlreadyExists(f"{folder} is a file, and an export of a table is a folder; name a folder")
    (place / "data").mkdir(parents=True)
    (place / "_started").touch()
    entries: list[dict[str, Any]] = []
    count = size = 0
    # The name tells nothing about the content, as with the service, so a second export never replaces a file.
    for lines in _files(pieces, items_a_file):
        name = f"{secrets.token_hex(13)}.json.gz"
        written, digest, raw = _write_file(place / "data" / name, lines, count, progress)
        entries.append(
            {
                "itemCount": written,
                "md5Checksum": digest,
                "etag": secrets.token_hex(16),
                "dataFileS3Key": f"{prefix}/data/{name}",
            }
        )
        count, size = count + written, size + raw
    arn = f"arn:aws:dynamodb:local:000000000000:table/{table}"
    summary = {
        "version": "2020-06-30",
        "exportArn": f"{arn}/export/{id}",
        "startTime": _timestamp(now),
        "endTime": _timestamp(dt.datetime.now(dt.UTC)),
        "tableArn": arn,
        "tableId": str(uuid.uuid4()),
        "exportTime": _timestamp(now),
        "s3Bucket": "local",
        "s3Prefix": None,
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"{prefix}/{FILES}",
        "billedSizeBytes": size,
        "itemCount": count,
        "outputFormat": "DYNAMODB_JSON",
        "exportType": "FULL_EXPORT",
    }
    _write_manifest(place, FILES, b"".join(dumps(entry) + b"\n" for entry in entries))
    _write_manifest(place, SUMMARY, dumps(summary) + b"\n")
    files = tuple(f"{place}/data/{entry['dataFileS3Key'].rpartition('/')[2]}" for entry in entries)
    return Export(str(place), files, count, table, id, _time_in(summary["exportTime"]))


def _files(pieces: Iterable[list[bytes]], items_a_file: int) -> Iterator[Iterator[list[bytes]]]:
    """Groups pieces into files of about `items_a_file` items each. There is at least one file."""
    waiting = iter(pieces)
    left = True

    def one(first: list[bytes]) -> Iterator[list[bytes]]:
        nonlocal left
        yield first
        count = len(first)
        while count < items_a_file:
            piece = next(waiting, None)
            if piece is None:
                left = False
                return
            yield piece
            count += len(piece)

    first = next(waiting, [])
    while True:
        yield one(first)
        following = next(waiting, None) if left else None
        if following is None:
            return
        first = following


def _write_file(
    path: Path, pieces: Iterable[list[bytes]], before: int, progress: Callable[[int], None] | None
) -> tuple[int, str, int]:
    """Writes one data file; returns the number of items, the checksum of the file, and the size of the items."""
    count = size = 0
    # No file name and no time in gzip's header, so that equal items give equal files.
    with (
        open(path, "wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=_LEVEL, mtime=0) as out,
    ):
        for piece in pieces:
            if piece:
                out.write(b'{"Item":' + b'}\n{"Item":'.join(piece) + b"}\n")
            count += len(piece)
            size += sum(map(len, piece))
            if progress is not None:
                progress(before + count)
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as written:
        while block := written.read(_BLOCK):
            digest.update(block)
    return count, _digest_text(digest), size


def _write_manifest(place: Path, name: str, content: bytes) -> None:
    (place / name).write_bytes(content)
    stem = name.removesuffix(".json")
    (place / f"{stem}.checksum").write_text(_digest_text(hashlib.md5(content, usedforsecurity=False)))


def _timestamp(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def lines_of(names: Iterable[str]) -> Iterator[bytes]:
    """The lines of local data files, one by one, for tests and for engines that cannot read files."""
    for name in names:
        with gzip.open(name, "rb") as file, io.BufferedReader(file) as lines:
            yield from lines
