"""Plans that bring what is stored to what classes declare.

`completing` says what one item lacks, and writes it. `passes` goes over the whole table. The record of the forms that
stored items have is in `plans.declared`.
"""
