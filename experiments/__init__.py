"""One module per table of the paper; run as `python -m experiments NAME`.

Each module keeps `measure` (numbers, slow) apart from `render` (tables and figures, fast), so that
a plot can be redrawn without measuring again.
"""
