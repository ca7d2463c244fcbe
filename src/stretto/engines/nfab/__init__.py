"""The NFAb engine: runs with registers (SASE+ paper, sections 4 and 5)."""
