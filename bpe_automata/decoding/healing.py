"""Token healing: the last ids of a prompt are given back, so that the answer may merge with them.

After the prompt `The answer is ` (with its space) the answer `yes` would have to begin without a
space, but the tokenizer writes ` yes` as one token. There are two reasons to give ids back:

    the constraint     after these ids no answer is canonical at all
    the distribution   some answer, together with the prompt's text, is tokenized across the end of
                       the prompt, so that masking alone would make it impossible

The ids that are given back are generated again: the constraint then begins with their text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bpe_automata._arguments import sequence_of_ids
from bpe_automata._budget import spending
from bpe_automata.automata.algebra import concatenation
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.decoding.constraint import Constraint, rebuilt
from bpe_automata.decoding.matcher import Healing
from bpe_automata.errors import DecodingError, EmptyLanguageError, PromptError
from bpe_automata.tokenizer.tokenizer import Tokenizer

_SAMPLES = 32


@dataclass(frozen=True)
class Healed:
    """constraint: over the text that is now generated, which is the text given back followed by
    the answer; prefix: the ids of the prompt that are kept; healing: None if none were given
    back."""

    constraint: Constraint
    prefix: tuple[int, ...]
    healing: Healing | None


def heal(constraint: Constraint, prefix: Sequence[int], n: int) -> Healed:
    """Give back as few of the last `n` ids of `prefix` as the constraint and the distribution need
    (see the module). Added tokens and control ids are never given back.

    Raises PromptError if the constraint is impossible all the same, BudgetExceededError, and
    ArgumentError if `prefix` is no sequence of ids."""
    if n < 0:
        raise DecodingError(f"cannot give back {n} ids of a prompt")
    with spending(constraint.budget):
        return _healed(constraint, sequence_of_ids(prefix), n)


def _healed(constraint: Constraint, ids: tuple[int, ...], n: int) -> Healed:
    first: PromptError | None = None
    best: Healed | None = None
    reason: Literal["constraint", "distribution"] | None = None
    answer: str | None = None
    for k in range(_most(constraint.tokenizer, ids, n) + 1):
        kept, given = ids[: len(ids) - k], ids[len(ids) - k :]
        text = constraint.tokenizer.text_bytes(given, kept)
        candidate = rebuilt(constraint, _begun_with(text, constraint.dfa)) if k else constraint
        try:
            candidate.engine.initial(kept)
        except (PromptError, EmptyLanguageError) as error:
            if not isinstance(error, PromptError):
                raise
            first, reason = first or error, reason or "constraint"
            continue
        lost = _lost(constraint, ids, kept)
        healing = Healing(given, text, reason or "distribution", answer, lost is None)
        best = Healed(candidate, kept, healing if k else None)
        if lost is None:
            return best
        reason, answer = reason or "distribution", answer or lost
    if best is None:
        raise first or PromptError("the prompt makes the constraint impossible")
    return best


def _most(tokenizer: Tokenizer, ids: tuple[int, ...], n: int) -> int:
    """How many ids at the end, of at most n, are ordinary text."""
    special = tokenizer.added_ids | tokenizer.description.controls
    count = 0
    while count < min(n, len(ids)) and ids[-1 - count] not in special:
        count += 1
    return count


def _lost(constraint: Constraint, prompt: tuple[int, ...], kept: tuple[int, ...]) -> str | None:
    """An answer for which `encode(prompt text + answer)` does not begin with the ids that are kept;
    None if none is found."""
    tokenizer = constraint.tokenizer
    tail, stays = tokenizer.last_text(prompt), tokenizer.last_text(kept)
    before = tokenizer.text_bytes(tail).decode("utf-8", "replace")
    for answer in _answers(constraint.dfa):
        ids = tokenizer.encode(before + answer)
        if tuple(ids[: len(stays)]) != stays and tokenizer.decode(ids) == before + answer:
            return answer
    return None


def _begun_with(text: bytes, dfa: ByteAutomaton) -> ByteAutomaton:
    return dfa.begun_with(text) if isinstance(dfa, LinkedDFA) else concatenation(text, dfa)


def _answers(dfa: ByteAutomaton) -> Iterator[str]:
    """The shortest answer with each first byte, then samples."""
    rng = random.Random(0)
    found = dict.fromkeys([dfa.shortest() or b""])
    for byte in range(256):
        after = dfa.step(dfa.start, byte)
        rest = dfa.shortest(after) if after else None
        if rest is not None:
            found.setdefault(bytes([byte]) + rest)
    found.update(dict.fromkeys(dfa.sample(rng, 16) for _ in range(_SAMPLES)))
    for text in found:
        yield text.decode("utf-8")
