"""Clients of DynamoDB, each in its own process, against one stub server.

`plain` defines the requests and their results. `answers` writes them in adjoin's layout, and `stub` serves
them. `with_*` are the contestants: each makes one client with the settings that a user would have, and
returns results in the form that its users work with. `worker` runs one contestant and measures it.
`benchmarks.client` starts everything, takes turns and prints the figures.
"""
