"""The journey of one message: timelines of what happened when, and explaining one offset."""
