"""What is made of matches: tables, changelogs, sets, RETURN's columns, and how much memory they take."""
