"""Servers of DynamoDB's protocol: the requests, how the servers run, and the clients.

`asked` defines the requests and knows no server. `contestants` starts servers and measures nothing. `wire`
and `callers` send requests. `in_process` measures client and server in one process, as in tests.
"""
