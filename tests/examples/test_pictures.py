"""The pictures of docs/walks.md are what `python -m examples.pictures` draws now, and the page shows each of them."""

from __future__ import annotations

from pathlib import Path

from examples.pictures import FOLDER, PICTURES, main


def test_pictures_are_those_of_the_examples(tmp_path: Path) -> None:
    main([str(tmp_path)])
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(written) == {f"{name}.svg" for name in PICTURES}
    for name, text in written.items():
        stored = (FOLDER / name).read_text()
        assert text == stored, f"{name} is not what is drawn now; run: python -m examples.pictures"


def test_each_picture_is_shown() -> None:
    page = (FOLDER.parent / "walks.md").read_text()
    for name in PICTURES:
        assert page.count(f"](images/{name}.svg)") == 1, name
