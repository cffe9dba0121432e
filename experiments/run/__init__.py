"""The runner: artefacts, their rows, where cells are measured, and what is written of them."""
