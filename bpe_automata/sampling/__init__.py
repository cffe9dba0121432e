"""Floor 4: decoding loops for any model that gives logits, and faithful sampling."""
