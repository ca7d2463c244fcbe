"""MATCH_RECOGNIZE against another library that has it, and against the same question in CEQL."""
