"""llama-cpp-python's processor: errors that its C code cannot swallow.

The last tests run llama-cpp-python 0.3.36 itself on SmolLM2, where it is installed.
"""

import logging
import re
from types import SimpleNamespace

import numpy as np
import pytest
from served import END, V, constraint

from bpe_automata import constrain
from bpe_automata.errors import PromptError
from bpe_automata.integrations.llama_cpp import ConstraintProcessor, options


@pytest.mark.parametrize("ids", [np.array([10**9], np.intc), SimpleNamespace()])
def test_whatever_is_raised_is_kept(ids, caplog):
    """The text may only end; the error is logged once, and raised by `check`."""
    processor = ConstraintProcessor(constraint("abab"))
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            found = processor(ids, np.zeros(V, np.single))
            assert np.flatnonzero(np.isfinite(found)).tolist() == [END]
    assert len(caplog.records) == 1
    with pytest.raises(type(processor.error)) as caught:
        processor.check(ids, None)
    assert caught.value is processor.error


# ---------------------------------------------------------------- the real one


@pytest.fixture(scope="module")
def llm(smollm2_gguf):
    why = "llama-cpp-python is missing: pip install llama-cpp-python"
    llama = pytest.importorskip("llama_cpp", reason=why)
    return llama.Llama(str(smollm2_gguf), n_ctx=128, n_threads=1, verbose=False, seed=3)


LANGUAGES = [r" (yes|no|maybe) (sir|madam)", r" [0-9]{2}:[0-9]{2}", r'\{"a": (true|false)\}']


@pytest.mark.parametrize("regex", LANGUAGES)
def test_the_real_one_writes_canonical_texts_of_the_language(regex, llm, smollm2_tokenizer):
    language = constrain(smollm2_tokenizer, regex, eos_ids=(llm.token_eos(),))
    prompt = smollm2_tokenizer.encode("Answer, please:")
    for seed in range(3):
        given = options(llm, language)
        found = llm.create_completion(list(prompt), max_tokens=30, seed=seed, **given)
        (choice,) = found["choices"]
        assert re.fullmatch(regex, choice["text"])
        assert choice["finish_reason"] == "stop"
        ids = llm.input_ids[: llm.n_tokens].tolist()
        assert smollm2_tokenizer.encode(smollm2_tokenizer.decode(ids)) == ids


def test_the_real_one_raises_what_its_c_code_would_swallow(llm, smollm2_tokenizer):
    language = constrain(smollm2_tokenizer, "orld", eos_ids=(llm.token_eos(),))
    merging = smollm2_tokenizer.encode(" w")
    with pytest.raises(PromptError):
        llm.create_completion(merging, max_tokens=5, **options(llm, language))
    given = options(llm, language)
    del given["stopping_criteria"]
    found = llm.create_completion(merging, max_tokens=5, **given)
    assert found["choices"][0]["text"] == ""
    assert isinstance(given["logits_processor"][0].error, PromptError)
