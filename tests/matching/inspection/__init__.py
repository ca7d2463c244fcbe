"""What a running query holds."""
