"""Plans that bring what is stored to what classes declare.

`completing` says what one item lacks, and writes it. `passes` goes over the whole table. The record of the forms that
stored items have is in `plans.declared`.

Into another table: `translating` says what an item is there, `storing` writes it, and `moving` goes over the old table
and follows its changes, with the state of `move_state`.
"""
