"""A Lambda function that keeps a graph true, ready to be deployed."""
