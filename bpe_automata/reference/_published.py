"""The two constructions that this package is named after, for complete tokenizers.

    direct_merge(tokenizer, language) = cartesian_merge(tokenizer, language)
                                      = { ids in D : bytes(ids) in language }

with D = { ids : encode(decode(ids)) = ids }. Both write the automaton out as a whole, minimal;
masks come from `bpe_automata.constrain`, which builds of CartesianMerge only what is visited.

Source: Tran-Thien 2024; complete tokenizers are ours.
"""

from __future__ import annotations

from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.decoding.constraint import constrain
from bpe_automata.reference._tokenized import direct_merged
from bpe_automata.token_automata.automaton import TokenAutomaton
from bpe_automata.tokenizer.tokenizer import Tokenizer


def direct_merge(
    tokenizer: Tokenizer, language: str | ByteDFA, eos_ids: tuple[int, ...] = ()
) -> TokenAutomaton:
    """DirectMerge: the language as sequences of base symbols, rewritten by one merge after the
    other. Slow where the language is large: it follows the whole merge table.

    language: a regex or a byte DFA; eos_ids: ids that are never text. Raises RegexError,
    UnsupportedTokenizerError, ImproperMergeTableError, BudgetExceededError.

    The article's example:

    >>> from bpe_automata import Tokenizer, direct_merge
    >>> print(direct_merge(Tokenizer.load("smollm2"), "boolean: ((true)|(false))"))
    TokenAutomaton(4 states, 4 transitions)
    """
    dfa = compile_regex(language) if isinstance(language, str) else language
    return direct_merged(tokenizer, dfa, eos_ids)


def cartesian_merge(
    tokenizer: Tokenizer, language: str | ByteDFA, eos_ids: tuple[int, ...] = ()
) -> TokenAutomaton:
    """CartesianMerge: the product of the language with the automaton of all canonical sequences.

    language: a regex or a byte DFA; eos_ids: ids that are never text. Raises what `constrain` and
    `Constraint.automaton` raise: EmptyLanguageError among others.

    The article's example, next to the automaton of all tokenizations:

    >>> from bpe_automata import Tokenizer, cartesian_merge, constrain
    >>> tokenizer, language = Tokenizer.load("smollm2"), "boolean: ((true)|(false))"
    >>> print(cartesian_merge(tokenizer, language))
    TokenAutomaton(4 states, 4 transitions)
    >>> print(constrain(tokenizer, language, "lift", eos_ids=()).automaton())
    TokenAutomaton(17 states, 52 transitions)
    """
    return constrain(tokenizer, language, eos_ids=eos_ids).automaton().minimised()
