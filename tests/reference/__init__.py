"""What queries mean, by brute force, straight from the definitions: the judge of all tests."""
