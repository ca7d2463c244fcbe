"""The backtrack algorithm (SASE+ paper, section 5.2.3): what the NFAb engine is compared with. For benchmarks and tests only."""
