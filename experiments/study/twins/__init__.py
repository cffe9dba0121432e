"""Two models alike but for the tokenizations that they were trained on."""
