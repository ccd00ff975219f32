"""Independent implementations of DynamoDB that the contract suite runs against.

`install` gets them, `processes` starts and ends them, `own_tables` keeps the tables of tests apart,
and `differences` says where each departs from the service, and why.
"""
