"""Random models over given vocabularies."""

from __future__ import annotations

from support import tiny_llama

from experiments.models import LoadedModel


def loaded_model(tokenizer, seed=2, eos_ids=(2,)) -> LoadedModel:
    """A random llama, in float64 so that sums can be compared closely."""
    model = tiny_llama(seed, tokenizer.n_ids, initializer_range=0.3)
    return LoadedModel("tiny", model.double(), tokenizer, eos_ids)


def next_logits(model, ids):
    """float64 [ids]: what a pass of its own says of the id after these."""
    import torch

    with torch.no_grad():
        return model(torch.tensor([list(ids)])).logits[0, -1]


def drawn_by_hand(model, prompt, numbers, temperature=1.0):
    """The ids that numbers draw, by the inverse of the cumulated masses of one pass for each."""
    ids = list(prompt)
    for number in numbers:
        masses = (next_logits(model, ids).double() / temperature).softmax(-1)
        ids.append(int((masses.cumsum(0) <= number).sum()))
    return ids[len(prompt) :]
