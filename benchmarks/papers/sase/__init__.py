"""The SASE+ paper (Agrawal et al., SIGMOD 2008): tables 2 and 3, figures 8(a) to 8(g)."""
