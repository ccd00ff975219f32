"""Plans: every operation is a generator that makes all decisions and does no I/O.

A plan yields a batch of requests, which may be performed in parallel, and is sent their responses in order. It returns
the result of the operation. Errors of the store are thrown into it. `run` and `run_async` in `adjoin.runner` drive
plans; no module here knows a store.

The folders, from below: `steps` has the parts that all plans use, and `counting` computes what edges contribute to
nodes. The modules of this folder are the verbs of a graph, and `maintenance` applies the change stream.
"""
