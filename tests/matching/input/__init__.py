"""Tables, files and streams as they are given."""
