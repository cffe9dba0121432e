"""Floor 1: alphabets and automata. Regex, set of strings or foreign automaton -> minimal byte DFA.

compile_regex(r) accepts s.encode()  <=>  re.fullmatch(r, s)
"""
