"""Floor 2: token automata. `lift` admits every tokenization of a matching text, `cartesian_merge`
the tokenizer's own, `explicit` writes an automaton out; `canonical` is the automaton of all
canonical sequences, `geometry` its part that is BPE alone."""
