"""KEEP and AFTER MATCH while events are read: for each open start the best match so far, and nothing else."""
