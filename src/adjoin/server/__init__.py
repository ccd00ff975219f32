"""A server that answers DynamoDB's own protocol from a store, as DynamoDB would answer."""
