"""A model of DynamoDB's partitions, and workloads to replay against it.

- `partitions`: what a partition takes, refuses and when it splits;
- `tables`: a table with its indexes, and how they hold each other back;
- `placing`: where entries go, by one shard, fixed shards or the real adaptive ones with their writers;
- `workloads`: what is asked for, made or recorded;
- `running`: one second after the other, and what came of it;
- `chart`: outcomes beside each other.

Nothing here reads a clock, a network or a graph.
"""
