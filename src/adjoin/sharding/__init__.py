"""Index shards: where an entry of an overloaded index is put, where it is looked for, and when shards are added.

Pure values and functions: nothing here knows of items, requests or stores, reads a clock, or waits.

- `maps`: which shards there are, and in which of them an entry may lie;
- `heat`: what writers saw, in one process and together;
- `policy`: whether there should be more shards, and where.
"""
