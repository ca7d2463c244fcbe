"""The engine of EQL: of each key, the latest partial match at each step."""
