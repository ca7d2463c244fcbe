"""The calls that people use on tables: ``match`` and ``Matcher``."""
