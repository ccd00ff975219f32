"""What a module of the user's holds, for commands that are about classes: the classes, and their layout."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from adjoin import Edge, Node
from adjoin.cli.command import meant
from adjoin.errors import AdjoinError, InvalidModel, InvalidValue, NotFound


def imported(name: str) -> ModuleType:
    """The module; the directory the command is run in is looked at first, as by `python -m`."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise NotFound(f"there is no module {name} here or in this environment; name it as in an import") from None
        raise InvalidModel(f"the module {name} cannot be imported: {error}") from error
    except AdjoinError:
        raise
    except Exception as error:
        raise InvalidModel(f"the module {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)


def named_in(module: ModuleType, name: str) -> list[Any]:
    known = tuple(each for each in vars(module) if each.isidentifier() and not each.startswith("_"))
    if name not in vars(module):
        raise NotFound(f"the module {module.__name__} has no {name!r}; {meant(name, known)}")
    value = getattr(module, name)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidValue(f"{module.__name__}.{name} is {value!r}; it must be a list")
    return list(value)


def models_in(module: ModuleType, name: str | None) -> list[Any]:
    if name is not None:
        return named_in(module, name)
    # Pydantic leaves classes of its own in a module, such as "Edge[Student, Course]", which no program can name.
    classes = [each for name, each in vars(module).items() if name.isidentifier() and isinstance(each, type)]
    found = [each for each in dict.fromkeys(classes) if issubclass(each, Node | Edge) and each not in (Node, Edge)]
    if not found:
        raise NotFound(f"the module {module.__name__} has no Node or Edge classes; name the module that has them")
    return found


def layout_in(module: ModuleType, name: str) -> Any:
    layouts = {
        each: value
        for each, value in vars(module).items()
        if hasattr(value, "bind") and hasattr(value, "table") and not isinstance(value, type)
    }
    if name:
        if name not in layouts:
            raise NotFound(f"the module {module.__name__} has no layout {name!r}; {meant(name, tuple(layouts))}")
        return layouts[name]
    if len({id(value) for value in layouts.values()}) > 1:
        raise InvalidModel(
            f"the module {module.__name__} has several layouts: {', '.join(layouts)}; "
            f"choose one with {module.__name__}:{next(iter(layouts))}"
        )
    return next(iter(layouts.values()), None)
