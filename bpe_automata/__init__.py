"""bpe_automata."""
