"""What adjoin costs: LinkBench's request mix beside other programs, and files of different size.

    python -m benchmarks.linkbench     the request mix: adjoin, a hand-written program, moto
    python -m benchmarks.scale         10,000 edges against 10,000,000

`workload` decides what is asked and knows no contestant; `handwritten`, `with_adjoin` and `with_moto`
answer it and measure nothing; `measure` measures and knows neither. `docs/benchmarks.md` explains the
figures.
"""
