"""What runs stretto, each job in a process of its own."""
