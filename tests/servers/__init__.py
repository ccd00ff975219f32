"""Servers that the contract suite runs against: `adjoin serve`, and independent implementations of DynamoDB.

`install` gets them, `processes` starts and ends them, `own_tables` keeps the tables of tests apart,
and `differences` says where each departs from the service, and why.
"""
