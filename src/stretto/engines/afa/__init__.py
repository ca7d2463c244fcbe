"""The AFA operator: automata with registers over disordered streams (AFA paper, sections 2 and 5, appendices C and D)."""
