"""Clients of DynamoDB side by side, each in a process of its own, against one stub server.

`plain` says what is asked for and what the answer is; `answers` lays it out as adjoin stores it, and
`stub` serves it. `with_*` are the contestants: each makes one client with the settings that a user
would have, and answers in the form that its users work with. `worker` runs one contestant and measures
it; `benchmarks.client` starts everything, takes turns and shows the figures.
"""
