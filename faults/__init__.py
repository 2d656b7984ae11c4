"""A cluster of real processes under load, with faults from a seed, and a checker of what its
clients saw. Beside the product, not in it: `python -m faults --seed 7 --seconds 60`."""
