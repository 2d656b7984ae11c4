"""One broker, built from its settings: the only room that knows all parts."""
