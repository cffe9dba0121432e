"""The part of the distortion study whose answers are enumerated: exact distributions."""
