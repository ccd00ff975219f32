"""How the page gets into the package: from sources that are here, and from nowhere else when it is shown."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from adjoin.explorer.serving import PAGE, page_files
from explorer import build
from tests.servers import install

ROOT = Path(__file__).resolve().parent.parent.parent
TEXTS = [path for path in build.sources() if path.suffix in (".ts", ".tsx", ".css", ".html", ".mjs", ".json")]


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((build.HERE / "package-lock.json").read_text())
    packages = [each for name, each in lock["packages"].items() if name]
    assert packages
    assert all("integrity" in each for each in packages)
    assert not [each for each in packages if "resolved" in each]


def test_nothing_of_others_is_in_the_repository() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "explorer", "src/adjoin/explorer"], cwd=ROOT, capture_output=True, text=True
    )
    if tracked.returncode:
        pytest.skip("this is no checkout of git")
    names = tracked.stdout.split()
    assert "explorer/src/main.tsx" in names
    assert not [name for name in names if "node_modules" in name or "/page/" in name]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_sources_load_nothing_from_elsewhere(path: Path) -> None:
    assert path.suffix == ".json" or not re.search(r"https?://", path.read_text(encoding="utf-8"))


def test_the_built_page_loads_nothing_from_elsewhere() -> None:
    if not build.is_built():
        pytest.skip(f"the page is not built; run: {build.COMMAND}")
    names = page_files()
    assert {"/index.html", "/explorer.js", "/layout-worker.js", "/style.css"} <= names.keys()
    for _, content in names.values():
        found = set(re.findall(rb"https?://[\w.]+", content))
        # Names of the elements that an SVG or MathML has; nothing is fetched from there.
        assert found <= {b"http://www.w3.org"}
        assert b"eval(" not in content


def test_a_change_of_a_source_asks_for_another_build(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.digest()
    monkeypatch.setattr(build, "sources", lambda: [build.HERE / "package.json"])
    assert build.digest() != before
    assert not build.is_built()


def test_fonts_are_found_where_their_folder_was_moved(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "fonts.conf").touch()
    install.tell_fonts(here)
    there = here.rename(tmp_path / "there")
    install.tell_fonts(there)
    assert f"<dir>{there}/fonts</dir>" in (there / "fonts.conf").read_text()


def test_the_wheel_has_the_page(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed; run: make test")
    if not build.is_built():
        pytest.skip(f"the page is not built; run: {build.COMMAND}")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if name.startswith("adjoin/explorer/page/")}
    assert {name.rpartition("/")[2]: content for name, content in inside.items() if not name.endswith(".built")} == {
        path.name: path.read_bytes() for path in PAGE.iterdir() if path.name != ".built"
    }
