"""The distortion table."""
