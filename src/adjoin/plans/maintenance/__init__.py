"""Maintenance: applies the change stream to aggregates and copied fields.

Nothing is computed from a change itself: it only says "look at this again". What an edge contributes is computed from
what is stored now. It is compared with the edge's ledger, which says what the edge contributed before. One transaction
writes the difference and the new ledger, on the condition that everything it depends on is still as it was read. So a
change may be delivered twice, late, in any order across items, and to several maintainers at once. A maintainer may
stop between any two requests.

One change passes these modules, in this order:

`stream`         reads the stored position and the changes after it, and stores the new position at the end
`isolating`      groups changes by tenant; if a batch fails, halves it until the failing change is found
`standing`       has the records of position, rebuilds and declarations, and compares those with this program's
`affected`       turns changes into work: edges to reconcile, nodes that were created or deleted, copied fields
`reconciling`    reads ledgers, nodes and edges, and writes what differs, with the parts in `plans/counting`
`cycles`         is asked before an edge is counted by a recursive rule
`ranks`          writes least, greatest, latest and top values on nodes whose ranks changed
`copies`         brings copied fields on edges up to date
`report`         records what can never be applied, and counts what was done

Beside this path, `neighbours` reconciles all edges of a node, `recounting` counts a node anew, `health` reads the
records of `standing`, and `expected` predicts the work for `explain`.
"""
