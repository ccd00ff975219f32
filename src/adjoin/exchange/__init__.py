"""Files of other programs ⇄ nodes and edges: CSV, JSON lines, Parquet, and the export format of DynamoDB.

`texts` has values as text and as JSON, and back. `readers` read the records of a file, and `mapping` makes nodes and
edges of them; `loading` writes these into a graph in large steps, sets aside what cannot be loaded, and `progress`
remembers how far it came. `writers` write what a scan finds. Nothing here prints, or knows the command line.
"""
