"""Shards of an overloaded index: where an entry is written, where it is searched, and when shards are added.

These modules contain only values and functions. They know no items, requests or stores, and read no clock.

- `maps`: which shards exist, and in which of them an entry may be;
- `heat`: how much is written, as one process counts it and as all processes count it together;
- `policy`: whether a field needs more shards, and where.
"""
