"""What adjoin costs: calls to DynamoDB, LinkBench's request mix beside other programs, files of different size,
and what its server answers beside other servers.

    python -m benchmarks.checksums     what checksums cost: a file with them beside one without
    python -m benchmarks.client        calls to DynamoDB: adjoin beside other clients, at a stub
    python -m benchmarks.linkbench     the request mix: adjoin, a hand-written program, moto
    python -m benchmarks.scale         10,000 edges against 10,000,000
    python -m benchmarks.serve         adjoin serve beside other servers of DynamoDB's protocol, on one core
    python -m benchmarks.maintain      aggregates kept true: changes a second, requests a change

`workload` decides what is asked and knows no contestant; `handwritten`, `with_adjoin` and `with_moto`
answer it and measure nothing; `measure` measures and knows neither. `clients` is the same for calls to
DynamoDB, and `servers` for servers of its protocol. `docs/benchmarks.md` explains the figures.
"""
