"""All benchmarks, one after the other: `python -m benchmarks [--quick]`."""

from __future__ import annotations

import sys

from benchmarks import (
    checksums,
    client,
    cold,
    explore,
    importing,
    linkbench,
    live_walk,
    maintain,
    migrate,
    rebuild,
    scale,
    serve,
    sharding,
    snapshot,
)

if __name__ == "__main__":
    if unknown := [argument for argument in sys.argv[1:] if argument != "--quick"]:
        raise SystemExit(
            f"{unknown[0]!r} is not an option here; run a single benchmark, such as benchmarks.client, for more options"
        )
    checksums.main(sys.argv[1:])
    client.main(sys.argv[1:])
    cold.main(sys.argv[1:])
    explore.main(sys.argv[1:])
    importing.main(sys.argv[1:])
    linkbench.main(sys.argv[1:])
    live_walk.main(sys.argv[1:])
    scale.main(sys.argv[1:])
    serve.main(sys.argv[1:])
    sharding.main(sys.argv[1:])
    maintain.main(sys.argv[1:])
    migrate.main(sys.argv[1:])
    rebuild.main(sys.argv[1:])
    snapshot.main(sys.argv[1:])
