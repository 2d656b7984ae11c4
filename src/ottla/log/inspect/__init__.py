"""A partition's files, read from outside: without a broker, and while one writes them."""
