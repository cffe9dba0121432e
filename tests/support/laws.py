"""The laws that hold for every tokenizer that is accepted, each as one function."""

import random
from itertools import islice

from bpe_automata import compile_regex, constrain
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.decoding.verification import verify
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, PromptError
from bpe_automata.reference import canonical_trie, compare
from bpe_automata.testing._inputs import _ids_of_bytes

MOST_STRINGS = 300
MOST_NEIGHBOURS = 60


def accepted_iff_encode_gives_the_ids_back(tokenizer, sequences):
    """How many of the sequences are canonical."""
    automaton = canonical_automaton(tokenizer)
    again = [own_ids(tokenizer, ids) for ids in sequences]
    canonical = 0
    for ids, own in zip(sequences, again, strict=True):
        assert automaton.accepts(ids) == (own == list(ids)), (
            f"{ids} spell {tokenizer.decode(ids)!r}, which is {own}"
        )
        canonical += own == list(ids)
    return canonical


def own_ids(tokenizer, ids):
    """What `encode` makes of the text of these ids; None if they spell no text. (Decoding would
    write U+FFFD, of whose three bytes a vocabulary may have only the one that was spelled.)"""
    try:
        return tokenizer.encode(tokenizer.text_bytes(ids).decode("utf-8"))
    except UnicodeDecodeError:
        return None


def neighbours(tokenizer, ids):
    """Other ids for nearly the same spelling: one token in two, two in one, a joint moved. They
    are the likeliest to be accepted wrongly."""
    spelled = ids_of(tokenizer)
    found = [
        [*ids[:at], *middle, *ids[at + size :]]
        for size in (1, 2)
        for at in range(len(ids) - size + 1)
        for middle in _spellings(b"".join(map(tokenizer.token_bytes, ids[at : at + size])), spelled)
    ]
    random.Random(len(ids)).shuffle(found)
    return list(islice((other for other in found if other != ids), MOST_NEIGHBOURS))


def ids_of(tokenizer):
    """The ids of each spelling."""
    return tokenizer.derived("ids of bytes", _ids_of_bytes)[0]


def _spellings(data, spelled):
    """The bytes in one id, and in two."""
    yield from ([one] for one in spelled.get(data, ()))
    for cut in range(1, len(data)):
        for left in spelled.get(data[:cut], ()):
            yield from ([left, right] for right in spelled.get(data[cut:], ()))


def begun(engine, prefix=()):
    """The first state, or the class of the error."""
    try:
        return engine.initial(prefix)
    except (EmptyLanguageError, PromptError) as error:
        return type(error)


def every_mask_is_that_of_the_trie_of_encode(
    tokenizer, regex, prefix=(), eos_ids=(), added_tokens=True, most=MOST_STRINGS
):
    """How many masks were compared; 0 where nothing can be spelled, or there are more strings."""
    try:
        dfa = compile_regex(regex)
        strings = [string.decode() for string in dfa.strings(most)]
    except BudgetExceededError:
        return 0
    special = {token.id for token in tokenizer.description.added if token.special}
    unread = {True: set(), False: tokenizer.added_ids, "plain": special}[added_tokens]
    trie = canonical_trie(tokenizer, strings, prefix, {*eos_ids, *unread})
    try:
        engine = constrain(tokenizer, dfa, eos_ids=eos_ids, added_tokens=added_tokens).engine
        state = engine.initial(prefix)
    except (EmptyLanguageError, PromptError):
        assert not trie, f"{regex!r} after {prefix} was said to be impossible"
        return 0
    results = list(compare(engine, state, trie))
    assert [wrong for wrong in results if wrong] == [], f"{regex!r} after {prefix}"
    return len(results)


def verify_finds_nothing(tokenizer, regex, prefix=(), n=10):
    """For the tokenizer's own tokenization and for all of them; how many walks were made."""
    walks = 0
    for method in ("canonical", "lift"):
        try:
            result = verify(tokenizer, regex, n=n, method=method, prefix=prefix)
        except (EmptyLanguageError, PromptError, BudgetExceededError):
            continue
        assert result.ok, f"{regex!r}: {result}"
        walks += result.walks
    return walks
