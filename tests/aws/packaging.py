"""A deployment package, as `sam build` makes it: the function's folder and everything it requires, in one zip.

What is required is taken from the packages that are installed here, which are those that the tests run with.
"""

from __future__ import annotations

import io
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent.parent
_NO_DATA = "botocore/data/"
_DATA = (
    "botocore/data/endpoints.json",
    "botocore/data/partitions.json",
    "botocore/data/sdk-default-configuration.json",
)
"""Of a hundred megabytes of descriptions of services, those that credentials and regions are found with."""


def package(folder: Path) -> bytes:
    """A zip of a function's folder with adjoin and what `adjoin[dynamodb]` asks for."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(folder.glob("*.py")):
            archive.write(file, file.name)
        source = ROOT / "src"
        for file in sorted((source / "adjoin").rglob("*.py")):
            archive.write(file, file.relative_to(source))
        for name, path in sorted(_files()):
            archive.write(path, name)
    return made.getvalue()


def _files() -> set[tuple[str, Path]]:
    files = set()
    for found in _distributions():
        for file in found.files or ():
            name = file.as_posix()
            is_data = name.startswith(_NO_DATA) and name not in _DATA
            if not (name.startswith("..") or "__pycache__" in name or is_data):
                files.add((name, Path(str(found.locate_file(file)))))
    return {(name, path) for name, path in files if path.is_file()}


def _distributions() -> Iterator[Distribution]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [*project["dependencies"], *project["optional-dependencies"]["dynamodb"]]
    seen: set[str] = set()
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.name in seen or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted.name)
        found = distribution(wanted.name)
        waiting += found.requires or []
        yield found
