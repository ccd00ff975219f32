"""What keeps aggregates and copies true: the change stream, applied.

Nothing is computed from a change itself: it only says "look at this again". What an edge adds is worked
out from what is stored now, compared with what its ledger says was added before, and the difference is
applied in one transaction with the new ledger, as long as everything is still what was read. So changes
may come twice, late, in any order across items and to several maintainers at once, and whoever applies
them may stop between any two requests.
"""
