"""The embedded store: DynamoDB's semantics in one SQLite file."""

from adjoin.stores.sqlite.store import AsyncSQLiteStore, SQLiteStore

__all__ = ["AsyncSQLiteStore", "SQLiteStore"]
