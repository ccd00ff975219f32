"""What edges contribute to nodes: ledgers, ranks, and the transaction that changes a node.

Two kinds of plans use this package: writes that count in their own transaction (`plans/in_transaction`), and
maintenance (`plans/maintenance`). Nothing here reads the change stream.

`contributions`      what an edge contributes by one rule, computed from the edge and its far node
`ledger`             an edge that a rule group counts, and what it has contributed so far, as it is stored
`rank_items`         the ranks of an edge, which ledgers name, and whether a rank that was found counts
`edge_state`         one edge with its ledger and nodes: the difference between "contributes" and "has contributed"
`node_transaction`   the edge states of one node, combined into a transaction
`arrivals`           finds the edges that arrive at a node without relying on an index
"""
