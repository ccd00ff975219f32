"""Stores, which hold items. Each store executes the requests of `adjoin.requests` and nothing else."""
