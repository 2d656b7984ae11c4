"""Errors that keep a broker from joining its cluster."""


class StartError(Exception):
    """This broker cannot join; the text is one line for the operator."""
