"""Larger languages, which are sampled."""
