"""`adjoin render`: every kind, told from a module as it stands, and what can be wrong with one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from adjoin import aws
from adjoin.cli import main
from adjoin.cli.render import KINDS
from examples import education, homes, invoices
from tests.aws.renderings import GOLDEN

BODY = """
from adjoin import AdjacencyList, Edge, Node
class Person(Node):
    id: str
class Knows(Edge[Person, Person]):
    pass
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Makes a module of this name and text in the directory the command is run in."""
    monkeypatch.chdir(tmp_path)

    def make(text: str) -> str:
        name = f"rendered_{tmp_path.name.replace('-', '_')}_{len(list(tmp_path.iterdir()))}"
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return make


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["render", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("example", ["homes", "people"])
@pytest.mark.parametrize(
    ("kind", "ending", "options"),
    [
        ("cloudformation", "json", []),
        ("terraform", "tf", []),
        ("cdk", "json", []),
        ("workbench", "json", ["--sample", "SAMPLE"]),
        ("policy", "json", ["--access", "full", "--region", "eu-west-1"]),
    ],
)
def test_every_kind(
    example: str, kind: str, ending: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    golden = GOLDEN / f"{example}.{kind}.{ending}"
    assert shown(capsys, kind, f"examples.{example}", *options) == golden.read_text()


def test_the_command_knows_every_kind() -> None:
    assert set(KINDS) == {"cloudformation", "terraform", "cdk", "workbench", "policy"}


def test_options_of_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--access read --access write --key S#1 --key S#2 --pattern C#* --tenant acme --account 123456789012"
    text = shown(capsys, "policy", "examples.education", *options.split(), "--partition", "aws-cn", "--name", "Other")
    assert json.loads(text) == aws.iam_policy(
        aws.table(education.MODELS, education.LAYOUT, "Other"),
        access=("read", "write"),
        leading_keys=["S#1", "S#2"],
        leading_patterns=["C#*"],
        tenant="acme",
        account="123456789012",
        partition="aws-cn",
    )


def test_a_policy_reads_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    table = aws.table(invoices.MODELS, invoices.LAYOUT)
    assert json.loads(shown(capsys, "policy", "examples.invoices")) == aws.iam_policy(table)


def test_a_name_in_place_of_the_layout_s(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "terraform", "examples.homes", "--name", "Homes-test", "--models", "MODELS")
    assert text == aws.terraform(aws.table(homes.MODELS, homes.LAYOUT, "Homes-test"))


def test_a_module_without_a_layout_has_the_default(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert '"TableName": "adjoin"' in shown(capsys, "cloudformation", module(BODY))


def test_one_of_several_layouts_is_named(module: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    name = module(BODY + "one = also_one = AdjacencyList(table='One')\ntwo = AdjacencyList(table='Two')\n")
    assert '"Two"' in shown(capsys, "cdk", f"{name}:two")
    assert main(["render", "cdk", name]) == 2
    assert f"has several layouts: one, also_one, two; choose one with {name}:one" in capsys.readouterr().err
    assert main(["render", "cdk", f"{name}:tow"]) == 2
    assert "has no layout 'tow'; did you mean 'two'?" in capsys.readouterr().err


def test_two_names_of_one_layout_are_no_choice(
    module: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert '"One"' in shown(capsys, "cdk", module(BODY + "one = also_one = AdjacencyList(table='One')\n"))


@pytest.mark.parametrize(
    ("text", "options", "status", "message"),
    [
        ("", [], 2, "has no Node or Edge classes; name the module that has them"),
        ("1 / 0", [], 1, "cannot be imported: ZeroDivisionError: division by zero"),
        ("import no_such_module_anywhere", [], 1, "cannot be imported: No module named 'no_such_module_anywhere'"),
        ("def f(:", [], 1, "cannot be imported: SyntaxError"),
        (BODY + "class Bad(Node):\n    pass\n", [], 1, "Bad has no field 'id'"),
        (BODY, ["--models", "PEOPLE"], 2, "has no 'PEOPLE'; it has AdjacencyList, Edge, Node, Person, Knows"),
        (BODY + "MODELS = Person", ["--models", "MODELS"], 2, "it must be a list"),
        (BODY, ["--name", "x"], 1, "'x' is not a name of 3 to 255 letters"),
    ],
)
def test_errors_are_one_line(
    text: str,
    options: list[str],
    status: int,
    message: str,
    module: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = list(sys.path)
    assert main(["render", "terraform", module(text), *options]) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("adjoin: ")
    assert output.err.count("\n") == 1
    assert message in output.err
    assert sys.path == path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tenant", "acme"], "--tenant is for policy and not for terraform; leave it out"),
        (["--sample", "X"], "--sample is for workbench and not for terraform"),
    ],
)
def test_options_of_another_kind(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "terraform", "examples.homes", *options]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert message in output.err


@pytest.mark.parametrize("name", ["nowhere", "examples.nowhere", "examples/nowhere.py", ":LAYOUT", ".homes"])
def test_a_module_that_is_not_there(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "cdk", name]) == 1
    error = capsys.readouterr().err
    assert "does not exist" in error or "cannot be imported" in error


@pytest.mark.parametrize(
    "arguments", [["render"], ["render", "pulumi", "x"], ["render", "policy", "x", "--access", "y"]]
)
def test_arguments_that_cannot_be_understood(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: adjoin" in capsys.readouterr().err


def test_the_program_finds_modules_where_it_is_run(module: Callable[[str], str], tmp_path: Path) -> None:
    source = Path(aws.__file__).parents[2]
    text = "import sys; sys.path.remove(''); from adjoin.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", text, "render", "terraform", module(BODY)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(source), "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('resource "aws_dynamodb_table" "adjoin" {')
