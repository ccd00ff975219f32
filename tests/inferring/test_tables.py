"""Programs that are inferred from whole tables: they open the table, explain its items and store them unchanged."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest

from adjoin.inferring import Inferred, infer
from adjoin.inferring.checking import is_own, tried
from tests.inferring.found import FOUND
from tests.inferring.published import LATER, PUBLISHED, Table, item, table
from tests.inferring.tables import DESIGNS, EXAMPLES, design, example, opened, scanned
from tests.inferring.told_apart import TOLD_APART

TABLES: dict[str, Callable[[], Table]] = {
    **{f"example {name}": partial(example, name) for name in EXAMPLES},
    **PUBLISHED,
    **LATER,
    **{f"found {name}": make for name, make in FOUND.items()},
    **{f"told apart {name}": make for name, make in TOLD_APART.items()},
    **{f"design {name}": partial(design, name) for name in DESIGNS},
}


@cache
def made(name: str) -> Table:
    return TABLES[name]()


@cache
def inferred(name: str) -> Inferred:
    """What is inferred from a whole table, once for all tests: it takes longer than what these do with it."""
    return infer(*made(name), "the test")


def explains(name: str) -> float:
    """The share of items that a program explains, after the graph itself has read and stored them again."""
    definition, items = made(name)
    found = inferred(name)
    mine = [item for item in items if not is_own(definition, item)]
    assert found.read == len(mine)
    with opened(found.source, made(name)) as (g, _):
        before = scanned(g._store, definition.name)
        entities = list(g.scan())
        assert len(list(g.scan().others)) == found.read - found.explained
        g.put_many(entities)
        assert scanned(g._store, definition.name) == before
    return found.explained / found.read


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_tables_of_the_examples_are_explained_whole(name: str) -> None:
    assert explains(f"example {name}") == 1


@pytest.mark.parametrize("name", PUBLISHED | LATER)
def test_published_tables(name: str) -> None:
    assert explains(name) >= 0.95


@pytest.mark.parametrize("name", FOUND)
def test_tables_that_were_found_later(name: str) -> None:
    assert explains(f"found {name}") >= 0.95
    found = inferred(f"found {name}")
    # The rest is counted, not guessed.
    assert sum(number for _, number in found.unexplained) == found.read - found.explained


def test_most_of_the_found_tables_are_told_apart_into_their_classes() -> None:
    names = {name: {each.name for each in inferred(f"found {name}").program.classes} for name in FOUND}
    assert names["gaming_profiles"] == {"Metadata", "Items", "Friends"}
    assert names["chat"] == {"Room", "User", "Join"}
    assert names["accounts"] >= {"Account", "Invoice", "User"}
    assert len(names["retail_cart"]) == 5
    assert names["crm"] == {"Tenant", "Lead", "Account"}


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "feed": {
            "UProfile": ("u#{id}", "profile"),
            "Post": ("u#{parent.id}", "post#{post}"),
            "Follower": ("u#{parent.id}", "follower#{follower}"),
            "Following": ("u#{parent.id}", "following#{following}"),
            "Like": ("post#{post}", "like#{like}"),
        },
        "documents": {"DocV": ("doc#{id}", "v#latest"), "VItem": ("doc#{parent.id}", "v#{v:06}")},
        "files": {"Files": ("{drive}", "{path}")},
        "school": {
            "StudentProfile": ("STUDENT#{id}", "PROFILE"),
            "Course": ("TERM#{term}", "COURSE#{course}"),
            "Student": ("TERM#{parent.term}", "COURSE#{parent.course}#STUDENT#{student}"),
        },
    }.items(),
)
def test_classes_that_keys_hardly_tell(name: str, expected: dict[str, tuple[str, str]]) -> None:
    assert explains(f"told apart {name}") == 1
    program = inferred(f"told apart {name}").program
    assert {each.name: (each.partition, each.sort) for each in program.classes} == expected


@pytest.mark.parametrize("name", DESIGNS)
def test_the_designs_that_other_tests_declare(name: str) -> None:
    assert explains(f"design {name}") >= 0.95


@pytest.mark.parametrize("name", [*PUBLISHED, *LATER, *(f"found {name}" for name in FOUND)])
def test_half_of_a_table_explains_the_other_half(name: str) -> None:
    definition, items = made(name)
    items = list(items)
    random.Random(1).shuffle(items)
    half = len(items) // 2
    found = infer(definition, items[:half], "the test")
    assert tried(found.source, definition, items[half:]).explained >= 0.95 * (len(items) - half)


def test_what_is_written_is_formatted_and_has_types(tmp_path: Path) -> None:
    for name in TABLES:
        source = inferred(name).source
        (tmp_path / f"t_{''.join(c if c.isalnum() else '_' for c in name)}.py").write_text(source)
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\nplugins = pydantic.mypy\n")
    for command in (
        ["ruff", "format", "--isolated", "--check", "."],
        ["ruff", "check", "--isolated", "--select", "E4,E7,E9,F", "."],
        ["mypy", "--config-file", "mypy.ini", "--explicit-package-bases", "."],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


# --- what is inferred --------------------------------------------------------------------------


def classes(name: str) -> dict[str, tuple[str, tuple[str, ...], str | None, str | None]]:
    program = inferred(name).program
    return {each.name: (each.kind, each.ends, each.partition, each.sort) for each in program.classes}


def test_education() -> None:
    assert classes("example education") == {
        "Course": ("node", (), "COURSE#{id}", "METADATA"),
        "Student": ("node", (), "STUDENT#{id}", "METADATA"),
        "Enrollment": ("edge", ("Student", "Course"), "STUDENT#{source.id}", "COURSE#{target.id}"),
    }


def test_nodes_that_only_an_index_names() -> None:
    found = classes("example homes")
    assert found["Class"][:2] == ("edge", ("Student", "Teacher"))
    assert found["Home"] == (
        "edge",
        ("Student", "Country"),
        "STUDENT#{source.id}",
        "HOME#{target.id}#{part}#{part_2}",
    )


def test_own_layouts_are_declared_as_such() -> None:
    source = inferred("example people").source
    assert 'LAYOUT = MaterializedGraph(table="People", shards=2, type_attribute="Type")' in source
    assert "class BornOn(Edge[Person, Date]):" in source
    assert "path: Annotated[tuple[str, ...], Indexed()]" in source


def test_aggregates_are_told_by_the_records_of_the_table() -> None:
    source = inferred("example shop, maintained").source
    assert 'owed: Annotated[Decimal, Sum("Placed", field="balance")] = Decimal(0)' in source


def test_children_of_children_and_composite_ids() -> None:
    found = classes("design code_hosting")
    assert found["Repo"][2] == "REPO#{repo_owner}#{repo_name}"
    assert found["Issue"] == (
        "child",
        ("Repo",),
        "REPO#{parent.repo_owner}#{parent.repo_name}",
        "ISSUE#{issue_number:07}",
    )
    assert found["Star"][:2] == ("edge", ("Repo", "Account"))


def test_the_functions_find_what_is_stored() -> None:
    found = inferred("battle_royale")
    with opened(found.source, made("battle_royale")) as (g, module):
        assert module.user(g, "player007").name == "Player 7"
        (edge, *_) = module.game_users_to_user(g, "player007")
        assert edge.target == "player007"
        assert edge in module.game_users_of_game(g, edge.source)
        assert {game.map_ for game in module.games_by_map_(g, "Juicy Jungle")} == {"Juicy Jungle"}


def test_an_index_over_keys_of_the_table_has_a_function_too() -> None:
    """The index of open alarms sorts by the table's sort key, and the inverted one has the keys of the table only."""
    items = [item(PK=f"ALARM#{at % 4}", SK=f"{at:03}", open="x", level="low") for at in range(12)]
    items += [item(PK=f"DEVICE#d{at}", SK="META", model="m") for at in range(12)]
    found = infer(table("Alarms", "PK SK", Open="open SK", Inverse="SK PK"), items, "the test")
    assert {"alarms_by_open", "devices_in_inverse"} <= {each.name for each in found.patterns}
