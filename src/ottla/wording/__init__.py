"""What all rooms say in the same way: numbers of things, the nearest name, errors with a hint."""
