"""Servers that speak DynamoDB's protocol, beside each other: what is asked of them, how they run, and who asks.

`asked` decides what is asked and knows no server; `contestants` starts servers and measures nothing; `wire`
and `callers` ask; `in_process` is for tests that have everything in one process.
"""
