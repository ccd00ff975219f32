"""The physical side: how nodes and edges lie in a table. Pure functions, no I/O."""
