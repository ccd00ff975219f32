"""What adjoin costs: calls to DynamoDB, LinkBench's request mix, files of different size, and the server.

    python -m benchmarks.checksums     the cost of checksums: a file with them and one without
    python -m benchmarks.client        calls to DynamoDB: adjoin and other clients, against a stub
    python -m benchmarks.linkbench     the request mix: adjoin, a hand-written program, moto
    python -m benchmarks.scale         10,000 edges against 10,000,000
    python -m benchmarks.serve         adjoin serve and other servers of DynamoDB's protocol, on one core
    python -m benchmarks.maintain      maintenance of aggregates: changes per second, requests per change

`workload` defines the operations and knows no contestant. `handwritten`, `with_adjoin` and `with_moto`
perform them and measure nothing. `measure` measures and knows neither. `clients` has the same parts for calls
to DynamoDB, and `servers` for servers of its protocol. `docs/benchmarks.md` explains the figures.
"""
