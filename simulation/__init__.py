"""The cluster's pure deciders in a simulated world: any bug is a number, and happens again."""
