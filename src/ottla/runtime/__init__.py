"""What every part uses: the clock, background tasks, waiting for a change."""
