"""The benchmarks at toy size, against their oracles."""
