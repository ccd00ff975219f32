"""The store on Amazon DynamoDB, and on every server that speaks its protocol."""

from adjoin.stores.dynamodb.store import AsyncDynamoDBStore, DynamoDBStore

__all__ = ["AsyncDynamoDBStore", "DynamoDBStore"]
