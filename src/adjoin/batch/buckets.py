"""Exports in buckets of S3, copied to this machine for engines that read local files.

Apache Arrow's file system reads them, which comes with `adjoin[batch]`: credentials and region are those that the
AWS SDK finds, and AWS_ENDPOINT_URL names another service. Only one export is copied: its manifests, and the data
files that they name.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.fs
from orjson import JSONDecodeError, loads

from adjoin.batch.exports import CHECKSUMS, FILES, ROOT, SUMMARY, folder_of
from adjoin.errors import InvalidExport, NotFound, ServiceUnreachable

_AT_ONCE = 8
_BLOCK = 1 << 22


def copied(place: str, folder: Path) -> Path:
    """A copy of the export at an address, below a folder; `open_export` tells whether it is whole."""
    address = folder_of(place).partition("://")[2]
    bucket = address.partition("/")[0]
    try:
        files = _opened(bucket)
        home = _only_export(files, place, address)
        return _Copying(files, place, home, folder / home.rpartition("/")[2]).done()
    except OSError as error:
        raise ServiceUnreachable(
            f"{place} cannot be read: {error}; look at the address, the region and the credentials"
        ) from error


def _opened(bucket: str) -> pyarrow.fs.S3FileSystem:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint is None:
        return pyarrow.fs.S3FileSystem(region=region or pyarrow.fs.resolve_s3_region(bucket))
    return pyarrow.fs.S3FileSystem(region=region or "us-east-1", endpoint_override=endpoint)


def _only_export(files: pyarrow.fs.S3FileSystem, place: str, address: str) -> str:
    """The folder of the manifests: the address itself, or the only export below it."""
    if _is_file(files, f"{address}/{SUMMARY}"):
        return address
    above = address if address.rpartition("/")[2] == ROOT else f"{address}/{ROOT}"
    listed = files.get_file_info(pyarrow.fs.FileSelector(above, allow_not_found=True))
    found: list[str] = sorted(each.path for each in listed if _is_file(files, f"{each.path}/{SUMMARY}"))
    if not found:
        raise NotFound(f"{place} holds no export: there is no {ROOT}/…/{SUMMARY} in it; name the right folder")
    if len(found) > 1:
        names = ", ".join(path.rpartition("/")[2] for path in found)
        raise NotFound(f"{place} holds several exports ({names}); name the folder of one of them")
    return found[0]


def _is_file(files: pyarrow.fs.S3FileSystem, name: str) -> bool:
    (told,) = files.get_file_info([name])
    return bool(told.type == pyarrow.fs.FileType.File)


class _Copying:
    """One export on its way."""

    def __init__(self, files: pyarrow.fs.S3FileSystem, place: str, home: str, folder: Path) -> None:
        self._files, self._place, self._home, self._folder = files, place, home, folder

    def done(self) -> Path:
        (self._folder / "data").mkdir(parents=True)
        for manifest in (SUMMARY, FILES):
            stem = manifest.removesuffix(".json")
            for name in (manifest, *(stem + ending for ending in CHECKSUMS)):
                if _is_file(self._files, f"{self._home}/{name}"):
                    self._copy(f"{self._home}/{name}", self._folder / name)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(self._copy_data, self._data()))
        return self._folder

    def _data(self) -> list[str]:
        """The keys of the data files, as the manifest names them; a line that it should not have is told later."""
        path = self._folder / FILES
        if not path.is_file():
            return []
        try:
            return [loads(line)["dataFileS3Key"] for line in path.read_text().splitlines() if line.strip()]
        except (JSONDecodeError, KeyError, TypeError):
            raise InvalidExport(f"{self._place}: {FILES} has a line that names no data file") from None

    def _copy_data(self, key: str) -> None:
        name = key.rpartition("/")[2]
        beside, named = f"{self._home}/data/{name}", f"{self._home.partition('/')[0]}/{key}"
        source = next((each for each in (beside, named) if _is_file(self._files, each)), None)
        if source is None:
            raise InvalidExport(f"{self._place}: the data file {key} is missing; copy the export again")
        self._copy(source, self._folder / "data" / name)

    def _copy(self, source: str, target: Path) -> None:
        with self._files.open_input_stream(source, compression=None) as stream, open(target, "wb") as file:
            while block := stream.read(_BLOCK):
                file.write(block)
