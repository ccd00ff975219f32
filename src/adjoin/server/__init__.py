"""DynamoDB's own protocol over a store: what the service would answer, for programs that speak to it."""
