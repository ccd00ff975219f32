"""Which class of a family an item is, and which label it may have.

The classes of a family have the same keys, so an attribute tells them apart: a field of the head with its own values in
each class, or the layout's type attribute. An item with another value is of the head itself. A class outside of a
family is told by its keys; if the layout has a type attribute, the item has its label there, or no label.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjoin.entity_types import EntityType, NodeType
from adjoin.errors import InvalidModel
from adjoin.expressions import Compare, Condition, Exists, Not, Or, Value, attribute
from adjoin.layouts.template_texts import TemplateTexts
from adjoin.values import AttributeValue, Item


@dataclass(frozen=True)
class ToldBy:
    """The attribute that tells a class, and its values there."""

    attribute: str
    values: tuple[AttributeValue, ...]
    may_be_absent: bool
    """Whether items of the class need not have the attribute."""

    def holds(self, item: Item) -> bool:
        stored = item.get(self.attribute)
        return self.may_be_absent if stored is None else stored in self.values

    def condition(self) -> Condition:
        path = attribute(self.attribute)
        equal: list[Condition] = [Compare("=", path, Value(value)) for value in self.values]
        if self.may_be_absent:
            equal.insert(0, Not(Exists(path)))
        return equal[0] if len(equal) == 1 else Or(tuple(equal))


def told_condition(kind: EntityType, texts: TemplateTexts) -> Condition | None:
    """What items of a class have besides their keys, as a condition."""
    found = telling(kind, texts)
    return None if found is None else found.condition()


def telling(kind: EntityType, texts: TemplateTexts) -> ToldBy | None:
    """What items of a class have besides their keys; None if nothing more is known of them."""
    type_attribute = texts.layout.type_attribute
    words: tuple[AttributeValue, ...] = tuple({"S": word} for word in texts.type_words(kind))
    if isinstance(kind, NodeType) and kind.head is not None:
        named = kind.head.attributes.get(kind.discriminator or "") or type_attribute
        assert named is not None
        return ToldBy(named, kind.told_by if kind.is_told_by_field else words, may_be_absent=False)
    return None if type_attribute is None else ToldBy(type_attribute, words, may_be_absent=True)


def check_discriminator(kind: NodeType, type_attribute: str | None) -> None:
    """Refuses a discriminator that is neither a field nor the type attribute of the layout."""
    if kind.discriminator is None or kind.is_told_by_field or kind.discriminator == type_attribute:
        return
    has = "none" if type_attribute is None else repr(type_attribute)
    raise InvalidModel(
        f"the discriminator {kind.discriminator!r} of {kind.name} is neither one of its fields nor the type attribute "
        f"of the layout, which is {has}; name a field, or give the layout type_attribute={kind.discriminator!r}"
    )
