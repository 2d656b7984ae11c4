"""The server-side assignors, `uniform` and `range`: which member gets which partition."""
