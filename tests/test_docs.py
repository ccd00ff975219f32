"""The documents are true: every Python block runs, every shown result and command output is what comes out.

The blocks of one document run in order, in one namespace, in an empty directory. Where they name a table
of DynamoDB, it is one of MiniStack.

- In a Python block, `expression  # -> text` is checked against the value's repr, and
  `statement  # -> raises Name` against the error; `>>>` works as in doctest.
- A Python block with tests is a file of its own, which pytest runs with adjoin's plugin.
- In a console block, each `$ adjoin …` and `$ python -m …` line is run, and what follows it is its output. `aws` is run
  where the AWS CLI is installed, and JavaScript where Node and the SDK are.
- `$ adjoin serve … &` and `$ adjoin explore … &` run to the end of the document. What the document calls port 8000 is
  one that is free.
- "..." in an expected text stands for anything.
"""

from __future__ import annotations

import ast
import doctest
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from mypy import api as mypy

from adjoin.cli import main
from adjoin.explorer.serving import PAGE
from adjoin.server.operations import OPERATIONS, STREAM_OPERATIONS
from adjoin.units import CHANGES_KEPT
from tests.servers import install
from tests.servers.open import Stores
from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TYPED = [ROOT / "README.md", ROOT / "docs" / "guide.md", ROOT / "docs" / "aws.md"]
OTHER_PROGRAMS = {"make", "pip", "git", "cd", "python", "python3", ".ci/run", "adjoin", "aws"}
SHOWN = "127.0.0.1:8000"
SETTINGS = {
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",
}

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
_RESULT = re.compile(r"#\s*->\s*(?P<expected>.+?)\s*$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CHECKER = doctest.OutputChecker()


@dataclass(frozen=True, slots=True)
class Block:
    document: Path
    line: int
    language: str
    body: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks_of(document: Path) -> list[Block]:
    text = document.read_text()
    return [
        Block(document, text.count("\n", 0, found.start("body")), found["language"], found["body"])
        for found in _FENCE.finditer(text)
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run_and_show_what_comes_out(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    servers: Stores,
) -> None:
    monkeypatch.chdir(tmp_path)
    # A program finds the modules beside it.
    monkeypatch.syspath_prepend(tmp_path)
    if any("dynamodb://" in block.body for block in blocks_of(document)):
        # What is written for the service runs on a server that takes its place.
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", servers.address("ministack"))
    for name, value in SETTINGS.items() if "adjoin serve" in document.read_text() else ():
        monkeypatch.setenv(name, value)
    module = types.ModuleType(f"document_{document.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with Served() as served:
        for block in blocks_of(document):
            block = replace(block, body=served.named(block.body))
            match block.language:
                case "python" if "def test_" in block.body:
                    run_tests(block)
                case "python":
                    run_python(block, module.__dict__)
                case "sh" | "console" | "bash" | "shell":
                    run_shell(block, capsys, served)
                case "js":
                    run_javascript(block)
                case "py" | "pycon":
                    pytest.fail(f"{block}: call the language python, so that the block is run")


@pytest.mark.parametrize("name", ["aggregates", "operations"])
def test_how_long_a_stream_surely_keeps_changes_is_what_the_code_says(name: str) -> None:
    said = re.findall(r"(\d+)\s+hours", (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
    assert said
    assert set(said) == {f"{CHANGES_KEPT / 3600:.0f}"}


def test_every_operation_of_the_server_is_documented() -> None:
    text = (ROOT / "docs" / "serve.md").read_text()
    section = text.partition("\n## Supported operations\n")[2].partition("\n\nThe operations")[0]
    assert sorted(re.findall(r"`(\w+)`", section)) == sorted([*OPERATIONS, *STREAM_OPERATIONS])


@pytest.mark.parametrize(
    "document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_lead_somewhere(document: Path) -> None:
    for link in _LINK.findall(re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = document if not name else (document.parent / name).resolve()
        assert target.exists(), f"{document.name} links to {link}, and there is no such file"
        assert not anchor or anchor in anchors_of(target), (
            f"{document.name} links to {link}, and there is no such heading"
        )


def anchors_of(document: Path) -> set[str]:
    """The anchors of headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


# --- Python ------------------------------------------------------------------------------------


def run_python(block: Block, namespace: dict[str, object]) -> None:
    if ">>>" in block.body:
        test = doctest.DocTestParser().get_doctest(block.body, namespace, str(block), str(block.document), block.line)
        test.globs = namespace
        outcome: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=outcome.append, clear_globs=False)
        assert not outcome, "".join(outcome)
        return
    source = "\n" * block.line + block.body
    lines = source.splitlines()
    for statement in ast.parse(source, filename=str(block.document)).body:
        assert statement.end_lineno is not None
        result = _RESULT.search(lines[statement.end_lineno - 1])
        run_statement(block, statement, result["expected"] if result else None, namespace)


def run_statement(block: Block, statement: ast.stmt, expected: str | None, namespace: dict[str, object]) -> None:
    place = f"{block.document.relative_to(ROOT)}:{statement.lineno}"
    if expected and expected.startswith("raises "):
        name = expected.removeprefix("raises ").split(":")[0].strip()
        with pytest.raises(Exception) as raised:  # noqa: PT011 - the name is checked below
            execute(ast.Module([statement], []), place, namespace)
        assert type(raised.value).__name__ == name, f"{place}: {raised.value!r} was raised, not {name}"
    elif expected and isinstance(statement, ast.Expr):
        value = eval(compile(ast.Expression(statement.value), place, "eval", dont_inherit=True), namespace)
        assert matches(expected, repr(value)), f"{place}: {value!r} came out, not {expected}"
    else:
        assert not expected, f"{place}: a result is shown for something that has none"
        execute(ast.Module([statement], []), place, namespace)


def execute(module: ast.Module, place: str, namespace: dict[str, object]) -> None:
    exec(compile(module, place, "exec", dont_inherit=True), namespace)


def run_tests(block: Block) -> None:
    """The block as a file of somebody's tests."""
    file = Path("test_block.py")
    file.write_text(block.body)
    options = ("-q", "-c", os.devnull, "--rootdir", ".", "-W", "error", "-p", "no:cacheprovider", "-p", "pytest_adjoin")
    shown = run_program(block, [sys.executable, "-m", "pytest", *options, str(file)])
    assert " passed" in shown


def run_program(block: Block, command: list[str], *paths: Path) -> str:
    """What a program prints that must succeed; Python finds modules in `paths` first."""
    path = os.pathsep.join(map(str, (*paths, ROOT / "src")))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment)
    assert done.returncode == 0, f"{block}: {done.stdout}{done.stderr}"
    return done.stdout


def run_javascript(block: Block) -> None:
    node = install.node_command()
    if node is None or not install.is_installed(install.JAVASCRIPT):
        return
    modules = Path("node_modules")
    if not modules.exists():
        modules.symlink_to(install.JAVASCRIPT / "node_modules")
    Path("block.mjs").write_text(block.body)
    expected = "".join(f"{found}\n" for found in re.findall(r"// -> (.+)", block.body))
    assert run_program(block, [str(node), "block.mjs"]) == expected


def matches(expected: str, got: str) -> bool:
    return _CHECKER.check_output(expected.strip() + "\n", got.strip() + "\n", doctest.ELLIPSIS)


# --- commands ----------------------------------------------------------------------------------


class Served:
    """The servers of a document, which run until it ends."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._address = SHOWN

    def start(self, words: list[str]) -> str:
        """Runs `adjoin serve` or `adjoin explore`; answers what it says, with the address as the document has it."""
        command = [sys.executable, "-m", "adjoin", *words[:-1], "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self._processes.append(process)
        assert process.stdout is not None
        said = process.stdout.readline()
        self._address = said.rpartition("http://")[2].partition("/")[0].strip()
        return said.replace(self._address, SHOWN)

    def named(self, text: str) -> str:
        """A text with the real address."""
        return text.replace(SHOWN, self._address)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.terminate()
            process.communicate(timeout=LIMIT)
            assert process.returncode == 0


def run_shell(block: Block, capsys: pytest.CaptureFixture[str], served: Served) -> None:
    for command, expected in commands_of(block):
        words = shlex.split(served.named(command), comments=True)
        if not words:
            continue
        assert words[0] in OTHER_PROGRAMS, f"{block}: nobody knows whether `{command}` works"
        if words[:2] == ["adjoin", "explore"] and not (PAGE / "index.html").exists():
            # Its page is not built; `make test` builds it.
            continue
        if words[0] == "adjoin":
            shown = served.start(words[1:]) if words[-1] == "&" else run_command(block, words, capsys)
        elif words[0] == "aws" and install.is_installed(install.AWSCLI):
            shown = run_program(block, [sys.executable, "-m", "awscli", *words[1:]], install.AWSCLI)
        elif words[:2] == ["python", "-m"] and expected:
            shown = run_program(block, [sys.executable, *words[1:]], ROOT)
        else:
            continue
        if expected:
            assert matches(expected, shown), f"{block}: `{command}` printed\n{shown}\nnot\n{expected}"


def run_command(block: Block, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    status = main(words[1:])
    shown = capsys.readouterr()
    assert status == 0, f"{block}: `{shlex.join(words)}` failed: {shown.err}"
    return shown.out


def commands_of(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with the output that is shown for it, if any."""
    if "$ " not in block.body:
        yield from ((line, "") for line in block.body.splitlines())
        return
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


# --- types -------------------------------------------------------------------------------------


def test_blocks_type_check(tmp_path: Path) -> None:
    for document in TYPED:
        python = [block.body for block in blocks_of(document) if block.language == "python"]
        code = "\n\n".join(body for body in python if "def test_" not in body)
        code = re.sub(r"^(>>>|\.\.\.) ?", "", code, flags=re.MULTILINE)
        # What raises is wrong on purpose, and type checkers may find it too.
        code = code.replace("# -> raises", "# type: ignore  # -> raises")
        (tmp_path / f"{document.stem.lower()}_blocks.py").write_text(code)
    config = tmp_path / "mypy.ini"
    config.write_text(
        "[mypy]\nstrict = true\nwarn_unused_ignores = false\nplugins = pydantic.mypy, adjoin.mypy\n"
        "[mypy-boto3.*]\nignore_missing_imports = true\n"
    )
    report, errors, status = mypy.run(
        ["--config-file", str(config), "--cache-dir", str(tmp_path / "cache"), *map(str, tmp_path.glob("*.py"))]
    )
    assert status == 0, report + errors
