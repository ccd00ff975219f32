"""The keys of an edge whose ids are short and need no quoting, made without rendering a template for each key.

Most edges are like that: every key is a fixed text before one of the two ids. Both ids are looked at once, and not for
each key again. For other ids and other templates, `EntityItems` renders the templates, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adjoin.layouts.key_values import LONGEST_PLAIN
from adjoin.layouts.keys import Template
from adjoin.values import Item

LONGEST = 120
"""In characters, of the fixed text and of the id. Both together are then within the limit of any key."""


class ShortKeys:
    """The key templates of one edge class, each as its fixed text and the place of its id among both."""

    def __init__(
        self,
        refused: Sequence[Callable[[str], Any]],
        own: Sequence[tuple[str, int]],
        others: Mapping[str, tuple[str, int]],
    ) -> None:
        self._refused = refused
        """Functions that find what an id must not contain, because keys quote it."""
        (self._partition, self._near), (self._sort, self._far) = own
        self._others = tuple((name, *form) for name, form in others.items())

    def item(self, names: tuple[str, str], typed: Item, source: Any, target: Any) -> Item | None:
        """The item with all keys and the attribute of its type; None if an id needs more than this."""
        ends: list[str] = []
        for id in (source, target):
            if type(id) is int and -LONGEST_PLAIN < id < LONGEST_PLAIN:
                id = str(id)
            elif type(id) is not str:
                return None
            if not id or len(id) > LONGEST or not id.isascii():
                return None
            for found in self._refused:
                if found(id) is not None:
                    return None
            ends.append(id)
        partition, sort = names
        item: Item = {partition: {"S": self._partition + ends[self._near]}, sort: {"S": self._sort + ends[self._far]}}
        item.update(typed)
        for name, lead, end in self._others:
            item[name] = {"S": lead + ends[end]}
        return item


def short_keys(
    partition: Template, sort: Template, index_keys: Mapping[str, Template], ends: tuple[str, str] | None
) -> ShortKeys | None:
    """For templates that are a fixed text and one of these two parts, in the form of their ids; else None."""
    templates = (partition, sort, *index_keys.values())
    if ends is None or not all(_is_short(each, ends) for each in templates):
        return None
    refused = dict.fromkeys(each.quoting.special for each in templates)
    own, *others = ((each.lead, ends.index(each.only_part or "")) for each in templates)
    return ShortKeys((*refused,), (own, others[0]), dict(zip(index_keys, others[1:], strict=True)))


def _is_short(template: Template, ends: tuple[str, str]) -> bool:
    is_plain = type(template) is Template and template.only_part in ends and template.type == "S"
    return is_plain and template.lead.isascii() and len(template.lead) <= LONGEST
