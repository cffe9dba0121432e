"""The distortion study: what is asked, and what the rows say in all."""
