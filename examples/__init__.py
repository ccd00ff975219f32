"""Four tables of published DynamoDB designs, as models, layouts, sample data and access patterns."""
