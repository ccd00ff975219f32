"""Snapshots: the topology of a graph in compact arrays, with chosen fields of numbers, in memory.

The libraries of arrays come with an extra, and are imported only when a call needs them. `calls` needs no extra;
everything else here needs `adjoin[snapshot]`.
"""
