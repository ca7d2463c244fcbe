"""The experiments of the FFP paper (Chandramouli, Goldstein, Maier; VLDB 2009), redrawn."""
