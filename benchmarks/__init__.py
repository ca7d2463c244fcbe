"""Benchmarks of stretto: definitions with expected counts, a runner, a peer, and the CORE paper's figures."""
