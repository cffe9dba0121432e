"""One module of `artefacts` per table or figure: `python -m experiments NAME`, see `lab`."""
