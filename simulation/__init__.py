"""Runs the shipped `Node` of several brokers in one process, in virtual time, from a seed."""
