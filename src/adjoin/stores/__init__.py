"""Where items live. Each store executes the requests of `adjoin.requests` and nothing else."""
