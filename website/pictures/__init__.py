"""The pictures of the documentation, drawn as SVG from text, from code or from real bytes."""
