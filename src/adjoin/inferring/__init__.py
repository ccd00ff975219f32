"""From a table to a program: classes, a layout and access patterns, inferred from items and checked on them.

The items are grouped by their keys (`splitting`, `grouping`), each group becomes a class (`roles`, `matching`, `hints`,
`classes`), and the classes become source (`patterns`, `source`). `checking` then runs the source on the items, and
`inference` changes or drops what does not write an item back as it was. Tables of adjoin's own layouts tell more, which
`own_layouts` reads. What nothing explains is counted.
"""

from adjoin.inferring.inference import Inferred, infer

__all__ = ["Inferred", "infer"]
