"""What can be asked of a cluster: one file per thing, functions over `Client`, typed answers.

Every function raises `ClientError`.
"""
