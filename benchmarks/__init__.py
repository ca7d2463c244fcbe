"""Benchmarks of stretto: definitions with expected counts, a runner, a peer, and the CORE paper's figures."""

import os

# What is measured is compiled, in processes of their own as well.
os.environ.setdefault("STRETTO_COMPILE", "now")
