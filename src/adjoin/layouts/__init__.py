"""Layouts: how nodes and edges become items of a table. Pure functions, no I/O."""
