"""The parts that every plan is made of. Nothing here knows an operation of the graph such as `put` or `maintain`.

`batches`       any number of gets, queries and writes, in as few requests as possible; writes of one item as one
`conditions`    predicates and changes of fields as conditions and updates of stored attributes
`again`         the loop: read, decide, write if what was read is unchanged, otherwise again; and those conditions
`spending`      budgets, and plans that run side by side within one

How much is read unless the program says otherwise stands here, apart from the plans that read so much: the signatures
of calls have these defaults. A signature is needed when its module is imported, and the plan only when it is called.
"""

SEGMENTS = 4
"""How many segments are read side by side by default. It is the same on every store, so that the cost is too."""
CAP = 10_000
"""How many edges of one class are read at one node, unless the program says otherwise."""
