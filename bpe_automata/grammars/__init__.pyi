from .linking import compile_grammar as compile_grammar
