"""What each operation of the service does, by its name: parameters to requests, and responses to answers."""
