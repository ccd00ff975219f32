"""Clients that others wrote, against `adjoin serve`: what their users do, through their own programs.

boto3 is in the environment of the tests. The others are installed apart (`python -m tests.servers.install`), run in
processes of their own, and are skipped where they are not there.
"""
