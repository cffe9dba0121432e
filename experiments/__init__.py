"""One module per table or figure; run as `python -m experiments NAME`.

Each keeps `measure` (numbers, slow) apart from `render` (tables and figures, fast), so that a plot
can be drawn again without measuring.
"""
