"""One file per artefact: a table or a figure with the rows behind it (see `experiments.lab`)."""
