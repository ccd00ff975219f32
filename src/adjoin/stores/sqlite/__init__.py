"""The embedded store: DynamoDB's semantics in one SQLite file."""

from adjoin.stores.sqlite.background import AsyncSQLiteStore
from adjoin.stores.sqlite.store import SQLiteStore

__all__ = ["AsyncSQLiteStore", "SQLiteStore"]
