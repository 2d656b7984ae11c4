"""What a pipeline is asked to do: its file and its Python arguments describe the same values."""
