"""What constraints do to the distribution of a model, and what a model writes unasked."""
