"""A model of DynamoDB's partitions, and workloads to replay against it.

- `partitions`: what a partition accepts and refuses, and when it splits;
- `tables`: a table with its indexes, and how they throttle each other;
- `placing`: where entries go, with one shard, fixed shards or the real adaptive shards with several writers;
- `workloads`: the requests, generated or recorded;
- `running`: runs a workload second by second, and collects the outcome;
- `chart`: draws several outcomes.

Nothing here reads a clock, a network or a graph.
"""
