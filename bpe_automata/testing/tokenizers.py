"""Small random tokenizers, complete: splitters, BPE, added tokens."""

from __future__ import annotations

from hypothesis import strategies as st

from bpe_automata.constructions import canonical_automaton
from bpe_automata.errors import BudgetExceededError, EncodingError, UnsupportedTokenizerError
from bpe_automata.testing.splits import pretokenizers
from bpe_automata.testing.tables import merge_tables
from bpe_automata.testing.written import added_token, byte_spelling, small_tokenizer
from bpe_automata.tokenizer import Tokenizer

CHARACTERS = ("a", "b", "c", " ", "1", "\n", "'", "s", "S", "é", "日", "本", "🎉")
ADDED = ("<|", "<|a|>", "a|>b", "|>", "ab", "b", "abc", "bca", " a", "日", "本1", "<", "xa", "ay")


@st.composite
def bpe_tokenizers(draw: st.DrawFn, max_merges: int = 14) -> Tokenizer:
    """A tokenizer with some 5 to 40 ids, of everything that is modelled: with the byte alphabet
    (some bytes missing) or the plain one, several splitters with every behaviour, added tokens that
    overlap, `ignore_merges` with tokens that no merge reaches, merges out of order. The few that
    are refused (several splitters with too many hypotheses, tokens of missing bytes) are left out.
    """
    byte_alphabet = draw(st.booleans())
    characters = draw(st.lists(st.sampled_from(CHARACTERS), min_size=2, max_size=5, unique=True))
    if byte_alphabet:
        characters = list(dict.fromkeys(byte_spelling("".join(characters).encode())))
    if len(characters) > 3 and draw(st.booleans()):
        characters.pop(draw(st.integers(0, len(characters) - 1)))
    shuffled = draw(st.sampled_from((False, False, True)))
    table = draw(merge_tables(tuple(characters), max_merges, shuffled))
    pretokenizer = draw(pretokenizers(byte_alphabet))
    contents = draw(st.lists(st.sampled_from(ADDED), max_size=3, unique=True))
    added = [added_token(content, special=draw(st.booleans())) for content in contents]
    ignore = draw(st.booleans())
    try:
        tokenizer = small_tokenizer(
            table.vocabulary, table.merges, pretokenizer, added, ignore_merges=ignore
        )
        canonical_automaton(tokenizer)
    except (UnsupportedTokenizerError, BudgetExceededError, EncodingError):
        return draw(st.nothing())
    return tokenizer
