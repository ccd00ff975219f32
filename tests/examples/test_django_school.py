"""The example for Django: its check as a command, and its views."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from adjoin import Edge, Graph
from examples.django_school.models import Course, Student

os.environ["DJANGO_SETTINGS_MODULE"] = "examples.django_school.settings"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import django
    from django.conf import settings
    from django.test import Client

    from examples.django_school.graph import graph

    django.setup()
    monkeypatch.setattr(settings, "GRAPH", str(tmp_path / "school.db"))
    graph.cache_clear()
    graph().put_many([Student(id="s1", name="Ann"), Course(id="c1", title="Physics")])
    yield Client()
    graph().close()
    graph.cache_clear()


def test_views_answer(client: Any) -> None:
    assert client.get("/students/s1").json() == {"id": "s1", "name": "Ann"}
    assert client.post("/students/s1/courses/c1", {"since": "2024-05-01"}).status_code == 201
    assert client.get("/students/s1/courses").json() == {
        "courses": [{"course": "c1", "since": "2024-05-01"}],
        "next": None,
    }


def test_errors_have_their_statuses(client: Any) -> None:
    gone = client.get("/students/s9")
    assert (gone.status_code, gone.json()) == (404, {"code": "not_found"})
    assert client.post("/students/s1/courses/c9", {"since": "2024-05-01"}).status_code == 404
    assert client.get("/students/s1/courses?after=nonsense").status_code == 400


class Unordered(Edge[Student, Course], label="ENROLLMENT"):
    since: date


def checked(location: str) -> tuple[int, str]:
    environment = {**os.environ, "GRAPH": location}
    command = [sys.executable, "-m", "examples.django_school", "check"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_check_is_a_command(tmp_path: Path) -> None:
    assert checked(str(tmp_path / "new.db")) == (0, "System check identified no issues (0 silenced).\n")
    Unordered.__name__ = "Enrollment"
    with Graph(tmp_path / "older.db", [Student, Course, Unordered]) as g:
        g.put(Unordered(source="s1", target="c1", since=date(2024, 5, 1)))
    status, said = checked(str(tmp_path / "older.db"))
    assert (status, "WARNINGS" in said, "(graph.differs)" in said) == (0, True, True), said
    (tmp_path / "broken.db").write_text("this is no graph")
    status, said = checked(str(tmp_path / "broken.db"))
    assert (status, "(graph.not_an_adjoin_file)" in said) == (1, True)
