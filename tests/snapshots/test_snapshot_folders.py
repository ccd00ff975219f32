"""Snapshots that are saved in folders and opened again."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from random import Random

import orjson
import pytest

import adjoin
from adjoin import AdjacencyList, AlreadyExists, Graph, InvalidSnapshot, NotFound
from tests.snapshots.graphs import EDGES, FIELDS, Knows, Person
from tests.snapshots.sourced import assert_same


@pytest.mark.parametrize("is_served", [False, True], ids=["file", "serve"])
def test_a_table_of_the_same_name_is_not_followed(
    is_served: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")

    def opened_in(name: str, stack: ExitStack) -> Graph:
        location = str(tmp_path / name)
        if is_served:
            server = stack.enter_context(adjoin.serve(location))
            location = f"dynamodb://walks?endpoint={server.endpoint}&region=us-east-1"
        g = stack.enter_context(Graph(location, [Person, Knows], layout=AdjacencyList(table="walks")))
        g.create_table()
        return g

    with ExitStack() as stack:
        one, other = opened_in("one.db", stack), opened_in("other.db", stack)
        one.put(Knows(source="a", target="b"))
        one.snapshot([Knows]).save(tmp_path / "saved")
        other.put_many(Knows(source="x", target=id) for id in "abc")
        with pytest.raises(InvalidSnapshot, match="of another table with the name 'walks'"):
            other.open_snapshot(tmp_path / "saved").follow(once=True)
        one.put(Knows(source="b", target="c"))
        snapshot = one.open_snapshot(tmp_path / "saved")
        assert snapshot.follow(once=True) == 1
        # Saved again, it is still of that table; one of an earlier version does not know of which it is.
        snapshot.save(tmp_path / "saved")
        with pytest.raises(InvalidSnapshot):
            other.open_snapshot(tmp_path / "saved").follow(once=True)
        place = tmp_path / "saved" / "snapshot.json"
        manifest = orjson.loads(place.read_bytes())
        del manifest["table id"], manifest["checksum"], manifest["checksums"]
        place.write_bytes(orjson.dumps(manifest))
        assert one.open_snapshot(tmp_path / "saved").follow(once=True) == 0


def test_a_folder_is_replaced_and_refused(graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    graph.snapshot([Knows]).save(folder)
    graph.snapshot(EDGES, FIELDS).save(folder)
    assert_same(graph, graph.open_snapshot(folder))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("saved.")]
    (tmp_path / "mine").mkdir()
    with pytest.raises(AlreadyExists, match="mine exists and is not a snapshot"):
        graph.snapshot([Knows]).save(tmp_path / "mine")
    with pytest.raises(NotFound, match=r"nowhere has no snapshot.json"):
        graph.open_snapshot(tmp_path / "nowhere")
    with pytest.raises(InvalidSnapshot, match="of the table 'walks' and tenant None"):
        graph.for_tenant("t").open_snapshot(folder)
    manifest = orjson.loads((folder / "snapshot.json").read_bytes())
    # As a snapshot of a version without checksums: whatever it says is read.
    del manifest["checksum"], manifest["checksums"]
    for change, message in (
        ({"format": 99}, "has the format 99, and this version reads 1"),
        ({"keys": {"Gone": []}}, "was made with another declaration of Gone"),
        ({"relations": [{}]}, "is damaged"),
    ):
        (folder / "snapshot.json").write_bytes(orjson.dumps(manifest | change))
        with pytest.raises(InvalidSnapshot, match=message):
            graph.open_snapshot(folder)
    (folder / "snapshot.json").write_bytes(orjson.dumps(manifest))
    assert_same(graph, graph.open_snapshot(folder))
    for content in (b"no array", b""):
        (folder / "edges.0.out.far.npy").write_bytes(content)
        with pytest.raises(InvalidSnapshot, match="is damaged"):
            graph.open_snapshot(folder)


def test_damage_anywhere_is_noticed(graph: Graph, tmp_path: Path) -> None:
    """Compiled code reads what the arrays say: a place beyond the end of one would end the process."""
    folder = tmp_path / "saved"
    graph.snapshot(EDGES, FIELDS).save(folder)
    chance = Random(7)
    for number, path in enumerate(sorted(folder.iterdir())):
        whole = path.read_bytes()
        # Spaces of the manifest say nothing.
        places = [place for place, byte in enumerate(whole) if byte not in b" \n" or path.suffix == ".npy"]
        place = chance.choice(places)
        end = whole[place + 1 :] if number % 4 else b""
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + end)
        with pytest.raises(InvalidSnapshot, match="saved "):
            graph.open_snapshot(folder)
        path.write_bytes(whole)
    assert_same(graph, graph.open_snapshot(folder))
