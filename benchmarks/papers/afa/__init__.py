"""The AFA paper's experiments."""
