"""Parameters that several operations share."""

from __future__ import annotations

from adjoin.server.shapes import NAME_PATTERN, Attribute, Entries, Flag, Listing, Structure, TableReference, Text, Whole
from adjoin.units import MAX_NAME_SIZE

TABLE = TableReference()
NAME = Text(least=3, most=255, pattern=NAME_PATTERN)
"""The name of an index, or of a table where no ARN is taken."""

FLAG = Flag()
TEXT = Text()
ATTRIBUTE = Attribute()
ATTRIBUTES = Entries(ATTRIBUTE)
NAMES = Entries(TEXT)
ATTRIBUTE_NAME = Text(most=MAX_NAME_SIZE)
ATTRIBUTE_NAMES = Listing(ATTRIBUTE_NAME, least=1, most=255)
POSITIVE = Whole("Integer", least=1)
POSITIVE_LONG = Whole("Long", least=1)
LONG = Whole("Long")

CAPACITY = Text(choices=("INDEXES", "TOTAL", "NONE"))
METRICS = Text(choices=("SIZE", "NONE"))
RETURN_VALUES = Text(choices=("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"))
RETURN_ON_FAILURE = Text(choices=("ALL_OLD", "NONE"))
OPERATOR = Text(choices=("OR", "AND"))
COMPARISON = Text(
    choices=(
        "IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE",
        "CONTAINS",
    )
)  # fmt: skip

NOTHING = Structure("Empty")
