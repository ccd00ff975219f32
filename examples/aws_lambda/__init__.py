"""A Lambda function that keeps a graph's aggregates up to date, ready to be deployed."""
