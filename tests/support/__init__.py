"""The support matrix as tests: one case per component value; see `case` and `experiments.support`."""
