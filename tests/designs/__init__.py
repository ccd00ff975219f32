"""Tables of published single-table designs: filled without adjoin, then read and written by it."""
