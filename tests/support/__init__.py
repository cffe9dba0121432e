"""The support matrix as tests, one case per component value: see `experiments.laws.support`."""
