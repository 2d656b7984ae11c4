"""The words of a journey: from the statements of its document to lines and sentences. Pure.

Printers lay them out and add nothing, so that they say no more than the statements do.
"""
