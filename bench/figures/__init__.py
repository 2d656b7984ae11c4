"""The figures, one file each: a `NAME`, and `measure` for one run on one broker."""
