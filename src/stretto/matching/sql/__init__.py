"""MATCH_RECOGNIZE over tables: the call ``sql``, its compiled form, and its rows."""
