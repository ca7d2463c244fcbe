"""What all languages share: the grammar of conditions and values, its callbacks, clauses, and mistakes in words."""
