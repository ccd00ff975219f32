"""`python -m tests.whole --seconds 3600 --seed 1 --edges 10000`: the fault simulation, for as long as one likes."""

from __future__ import annotations

import argparse
import secrets

from tests.whole.driver import simulate


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.whole", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="rounds are begun for so long (60)")
    parser.add_argument("--seed", type=int, default=None, help="which faults (others each time)")
    parser.add_argument("--edges", type=int, default=300, help="edges of the largest node that is deleted (300)")
    parser.add_argument(
        "--round", type=float, default=None, help="seconds of disturbance in a round (12; 60 with 10,000)"
    )
    parser.add_argument(
        "--first", type=int, default=0, help="the round to begin with, if an earlier run failed there (0)"
    )
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**32) if arguments.seed is None else arguments.seed
    # In less time nobody would have made such a node, much less deleted it.
    round_seconds = arguments.round or max(12.0, arguments.edges * 0.006)
    print(f"seed {seed}", flush=True)
    print(simulate(arguments.seconds, seed, edges=arguments.edges, round_seconds=round_seconds, first=arguments.first))


if __name__ == "__main__":
    main()
