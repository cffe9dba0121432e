"""How often a model leaves its tokenizer's own tokenization."""
