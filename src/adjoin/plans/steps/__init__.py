"""The parts that every plan is made of. Nothing here knows an operation of the graph such as `put` or `maintain`.

`batches`       any number of gets, queries and writes, in as few requests as possible
`conditions`    predicates and changes of fields as conditions and updates of stored attributes
`still`         conditions that an item is still as it was read
`again`         the loop: read, decide, write if nothing changed, otherwise again
`spending`      budgets, and plans that run side by side within one
`joining`       several writes of one item joined into one
"""
