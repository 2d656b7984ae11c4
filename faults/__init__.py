"""A cluster of real processes under load, with faults from a seed, and a checker of the clients'
history. Not part of the product: `python -m faults --seed 7 --seconds 60`."""
