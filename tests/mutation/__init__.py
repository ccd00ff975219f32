"""Mutation testing: the code is changed in one place after another, and each time some test should fail.

    python -m tests.mutation queries                     # every mutant of src/adjoin/queries
    python -m tests.mutation layouts --sample 25         # at most 25 of each module, the same ones each time
    python -m tests.mutation plans --only write.py:120   # those of one line, with what each changes

`mutants` changes source, `trials` runs tests against what it made, `folders` says which tests are whose.
"""
