"""The laws of canonical tokenization on real tokenizers, and what is supported."""
