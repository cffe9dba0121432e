"""The distortion study: what is asked, and what its rows say as a whole. Its two parts, each with
rows and tables of its own, are `study.enumerated` and `study.sampled`."""
