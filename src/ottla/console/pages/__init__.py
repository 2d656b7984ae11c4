"""A file for each page: what it asks the cluster, and what its template is given."""
