"""The store on Amazon DynamoDB, and on every server that speaks its protocol."""

from adjoin.stores.dynamodb.blocking import DynamoDBStore
from adjoin.stores.dynamodb.store import AsyncDynamoDBStore

__all__ = ["AsyncDynamoDBStore", "DynamoDBStore"]
