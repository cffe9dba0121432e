"""Floor 1: explicit automata over token ids, whatever built them. `TokenAutomaton` holds every
operation; each is written in a module of its own, on the plain arrays of a `Table`."""
