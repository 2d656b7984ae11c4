"""AWS Glue: what a job needs to run a pipeline file there, and the job itself."""
