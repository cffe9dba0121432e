"""Whole random tokenizers, trained by `tokenizers`: each is refused with a typed error, or obeys
every law. With --long at least 300 different ones obey them, otherwise 9."""

from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.laws import (
    accepted_iff_encode_gives_the_ids_back,
    every_mask_is_that_of_the_trie_of_encode,
    neighbours,
    verify_finds_nothing,
)

from bpe_automata.testing import (
    cyclic_regexes,
    finite_regexes,
    resegmentations,
    texts,
    trained_tokenizers,
)
from bpe_automata.testing._inputs import own_pieces


def check(tokenizer, data, done):
    """All laws on one tokenizer; done: how much was compared."""
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


def test_trained_tokenizers_are_refused_or_obey_every_law(request):
    n = 1200 if request.config.getoption("--long") else 36
    obedient, pipelines, done = set[str](), set[str](), Counter[str]()

    # A tokenizer takes minutes to shrink; the failing one is small as it is.
    phases = (Phase.explicit, Phase.reuse, Phase.generate)

    @settings(max_examples=n, phases=phases, suppress_health_check=list(HealthCheck))
    @given(st.data(), trained_tokenizers())
    def law(data, tokenizer):
        check(tokenizer, data, done)
        obedient.add(tokenizer.fingerprint)
        of = tokenizer.description
        kinds = [normalizer.kind for normalizer in of.normalizers]
        pipelines.add(repr([kinds, of.splitters, of.prefix, of.byte_level]))

    law()
    assert len(obedient) >= n // 4  # the first ones are much alike
    assert len(pipelines) >= n // 12
    assert all(done.values())
