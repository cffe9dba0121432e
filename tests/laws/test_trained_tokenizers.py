"""Whole random tokenizers, trained by `tokenizers`: each is refused with a typed error, or obeys
every law. With --long on at least 300 different ones, otherwise on 15."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.laws import (
    accepted_iff_encode_gives_the_ids_back,
    every_mask_is_that_of_the_trie_of_encode,
    neighbours,
    verify_finds_nothing,
)

from bpe_automata import Tokenizer
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata.testing import (
    REFUSALS,
    cyclic_regexes,
    finite_regexes,
    resegmentations,
    texts,
    tokenizer_files,
)
from bpe_automata.testing._inputs import own_pieces

_QUOTED = re.compile(r"'[^']*'|\d+")
"""What differs between two errors of one reason."""


@dataclass
class Census:
    """accepted: fingerprints; pipelines: distinct ones of everything but the vocabulary; refused:
    how often for which reason; done: how much was compared."""

    accepted: set[str] = field(default_factory=set)
    pipelines: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)

    def count(self, tokenizer, content):
        """One more that obeys the laws, or one that was there already."""
        self.accepted.add(tokenizer.fingerprint)
        parts = (content[part] for part in ("normalizer", "pre_tokenizer", "decoder"))
        self.pipelines.add(repr([*parts, content["model"].get("byte_fallback")]))

    def __str__(self) -> str:
        lines = [
            f"\n{len(self.accepted)} different tokenizers accepted "
            f"({len(self.pipelines)} different pipelines), {self.refused.total()} refused",
            *(f"  {count} {what}" for what, count in self.done.items()),
            *(f"  refused {count} times: {why}" for why, count in self.refused.most_common()),
        ]
        return "\n".join(lines)


def read(content, census):
    """The tokenizer, None if it is refused; every other error comes through."""
    try:
        tokenizer = Tokenizer.from_json(content)
        canonical_automaton(tokenizer)
    except REFUSALS as error:
        component, why = getattr(error, "component", ""), getattr(error, "why", str(error))
        reason = f"{type(error).__name__}: {component}: {why}"
        census.refused[_QUOTED.sub("…", reason)] += 1
        return None
    return tokenizer


def check(tokenizer, data, done):
    """All laws on one tokenizer."""
    both = st.builds(str.__add__, texts(tokenizer), texts(tokenizer))
    own = [tokenizer.encode(text) for text in data.draw(st.lists(both, min_size=4, max_size=6))]
    others = [data.draw(resegmentations(tokenizer, tokenizer.decode(ids))) for ids in own]
    others += [other for ids in own for other in neighbours(tokenizer, ids)]
    done["canonical sequences"] += accepted_iff_encode_gives_the_ids_back(tokenizer, own)
    canonical = accepted_iff_encode_gives_the_ids_back(tokenizer, others)
    done["canonical re-segmentations"] += canonical
    done["other re-segmentations"] += len(others) - canonical
    pieces = data.draw(st.lists(st.sampled_from(own_pieces(tokenizer)), min_size=2, max_size=5))
    added = [(), *((token.id,) for token in tokenizer.description.added)]
    eos = data.draw(st.sampled_from(added))
    finite = data.draw(finite_regexes(pieces))
    law = every_mask_is_that_of_the_trie_of_encode
    done["masks"] += law(tokenizer, finite, (), eos)
    prompt = data.draw(st.sampled_from(own))
    prompt = prompt[: data.draw(st.integers(0, len(prompt)))]
    done["masks after a prompt"] += law(tokenizer, finite, prompt, eos)
    cyclic = data.draw(cyclic_regexes(pieces))
    done["walks"] += verify_finds_nothing(tokenizer, cyclic)
    done["walks after a prompt"] += verify_finds_nothing(tokenizer, cyclic, prompt, n=5)


def test_trained_tokenizers_are_refused_or_obey_every_law(request, capsys):
    census, least = Census(), 300 if request.config.getoption("--long") else 15

    # A tokenizer takes minutes to shrink; the failing one is small as it is.
    phases = (Phase.explicit, Phase.reuse, Phase.generate)

    @settings(max_examples=4 * least + 60, phases=phases, suppress_health_check=list(HealthCheck))
    @given(st.data(), tokenizer_files())
    def law(data, content):
        tokenizer = read(content, census)
        if tokenizer is not None:
            check(tokenizer, data, census.done)
            census.count(tokenizer, content)

    law()
    with capsys.disabled():
        print(census)
    assert len(census.accepted) >= least
    assert len(census.pipelines) >= least // 3
    assert all(census.done.values())
