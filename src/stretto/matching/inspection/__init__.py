"""What a running query holds: partial matches, waiting events, the state of keys."""
