"""The CORE paper (Bucchi et al., VLDB 2022): figures 7, 8, 9 and 11."""
