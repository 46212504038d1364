"""What callgate costs, measured beside what merely reading and committing costs, on a real broker."""
