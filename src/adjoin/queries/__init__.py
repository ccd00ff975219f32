"""Lazy queries: what `out`, `into`, `collection` and `find` return.

A query is a value until it is iterated or asked for a page, a count or its first result.
"""
