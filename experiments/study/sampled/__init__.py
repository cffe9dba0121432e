"""The part of the distortion study whose languages are too large to enumerate: samples."""
