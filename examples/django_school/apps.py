"""The app, and its check: `manage.py check` says whether the table is what the classes need."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning, register

from adjoin import AdjoinError
from examples.django_school.graph import graph


class School(AppConfig):
    name = "examples.django_school"
    label = "school"

    def ready(self) -> None:
        register(check_graph, "graph")


def check_graph(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Errors if the graph cannot be opened or its table lacks something, warnings if its classes have changed."""
    try:
        found = graph().differences()
    except AdjoinError as error:
        return [Error(str(error), id=f"graph.{error.code}")]
    return [Warning(str(each), hint="see what g.migrate(dry_run=True) returns", id="graph.differs") for each in found]
