"""The tECS engine: constant time per event, output-linear delay (CORE, section 4)."""
