"""The documents are true: every Python block runs, every shown result and command output is what comes out.

The blocks of one document run in order, in one namespace, in an empty directory. Where they name a table
of DynamoDB, it is one of MiniStack.

- In a Python block, `expression  # -> text` is checked against the value's repr, and
  `statement  # -> raises Name` against the error; `>>>` works as in doctest.
- In a console block, each `$ adjoin …` line is run, and what follows it is its output.
- "..." in an expected text stands for anything.
"""

from __future__ import annotations

import ast
import doctest
import re
import shlex
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mypy import api as mypy

from adjoin.cli import main
from tests.servers.open import Stores

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TYPED = [ROOT / "README.md", ROOT / "docs" / "guide.md", ROOT / "docs" / "aws.md"]
OTHER_PROGRAMS = {"make", "pip", "git", "cd", "python", "python3", ".ci/run", "adjoin"}

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
    if any("dynamodb://" in block.body for block in blocks_of(document)):
        # What is written for the service runs on a server that takes its place.
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", servers.address("ministack"))
    module = types.ModuleType(f"document_{document.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks_of(document):
        match block.language:
            case "python":
                run_python(block, module.__dict__)
            case "sh" | "console" | "bash" | "shell":
                run_shell(block, capsys)
            case "py" | "pycon":
                pytest.fail(f"{block}: call the language python, so that the block is run")


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


def matches(expected: str, got: str) -> bool:
    return _CHECKER.check_output(expected.strip() + "\n", got.strip() + "\n", doctest.ELLIPSIS)


# --- commands ----------------------------------------------------------------------------------


def run_shell(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    for command, expected in commands_of(block):
        words = shlex.split(command, comments=True)
        if not words:
            continue
        assert words[0] in OTHER_PROGRAMS, f"{block}: nobody knows whether `{command}` works"
        if words[0] != "adjoin":
            continue
        capsys.readouterr()
        status = main(words[1:])
        shown = capsys.readouterr()
        assert status == 0, f"{block}: `{command}` failed: {shown.err}"
        if expected:
            assert matches(expected, shown.out), f"{block}: `{command}` printed\n{shown.out}\nnot\n{expected}"


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
        code = "\n\n".join(block.body for block in blocks_of(document) if block.language == "python")
        code = re.sub(r"^(>>>|\.\.\.) ?", "", code, flags=re.MULTILINE)
        (tmp_path / f"{document.stem.lower()}_blocks.py").write_text(code)
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\nplugins = pydantic.mypy\n")
    report, errors, status = mypy.run(
        ["--config-file", str(config), "--cache-dir", str(tmp_path / "cache"), *map(str, tmp_path.glob("*.py"))]
    )
    assert status == 0, report + errors
