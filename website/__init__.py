"""The documentation as a site: `make docs` builds it in `.cache/docs`."""
