"""Operations of the server, each by what it answers."""
