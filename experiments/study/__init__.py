"""What constraints do to a model's law, and what a model writes unasked."""
