"""What one mis-tokenized word does to a model."""
