"""Compiles the kernels in advance and prepares tokenizers: `bpe-automata warm [TOKENIZER ...]`.

Compiled kernels are kept on disk (numba's cache: next to the sources, or `$NUMBA_CACHE_DIR`). They
are run on a small tokenizer trained in memory, so nothing else has to be installed. A few small
kernels, which enlarge tables or read the text after an added token, are still compiled later.

A tokenizer is prepared by making its automaton and its groups of tokens, which are kept in the
cache on disk.
"""

from __future__ import annotations

import argparse
import logging
import pkgutil
import random
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, get_args

import numpy as np
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Trained

import bpe_automata._core as core
import bpe_automata._kernels as kernels
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.linked_regex import link_regex
from bpe_automata._automata.sources import from_strings
from bpe_automata._cli.common import Commands, add_command, load_tokenizer, progress_line, show
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._core.tables import TokenizerTables
from bpe_automata._decoding.constraint import Constraint, Method, constrain
from bpe_automata._decoding.explanation import explain
from bpe_automata._decoding.matcher import matcher_of
from bpe_automata._decoding.verification import verify
from bpe_automata._kernels import after_each_compiled, compiled
from bpe_automata._tokenizer.sources.implied_merges import all_splits
from bpe_automata._tokenizer.tokenizer import Tokenizer
from bpe_automata.banning import Ban, Spellings
from bpe_automata.errors import BudgetExceededError
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.schemas import json_schema
from bpe_automata.schemas._escapes import json_string

METHODS: tuple[Method, ...] = get_args(Method)
_SMALL = (
    r"(true|false)",
    r"(?i)[a-c]{0,9}é?日?",
    r"(\w| ){0,40}[^\n]*",
    r"<[\s\S]*",
    r"(a|é|日)*é(a|é|日){11}",
)
_READ = "the answer is true, the answers are false: there was no other answer to it than that"


def add_warm(commands: Commands) -> None:
    """Add the command `warm`."""
    summary = "compile the kernels beforehand (a minute or two, once on a machine)"
    parser = add_command(commands, "warm", summary, _run_warm)
    parser.add_argument(
        "tokenizers",
        nargs="*",
        metavar="TOKENIZER",
        help="keep on disk what masks of common languages need of these: later processes begin "
        "with it",
    )


def _run_warm(arguments: argparse.Namespace) -> int:
    begin, before = time.perf_counter(), compiled()
    tokenizers = list(map(load_tokenizer, arguments.tokenizers))
    quiet = logging.getLogger("bpe_automata")
    level = quiet.level
    with progress_line("kernels are ready") as report, after_each_compiled(counted(report)):
        quiet.setLevel(logging.ERROR)  # the logger advises to run this very command
        try:
            warm_kernels(trained())
        finally:
            quiet.setLevel(level)
    for tokenizer in tokenizers:
        _ = TokenizerTables(canonical_automaton(tokenizer)).groups
    taken = round(time.perf_counter() - begin, 1)
    done = {"kernels_compiled": compiled() - before, "tokenizers_prepared": arguments.tokenizers}
    if not arguments.json:
        done["tokenizers_prepared"] = ", ".join(arguments.tokenizers) or None
    show(done | {"seconds": taken}, arguments.json)
    return 0


def counted(report: Callable[[int, int], None] | None) -> Callable[[], None]:
    """Reports how many kernels are ready, compiled or loaded, out of how many."""
    kernels = all_kernels()

    def count() -> None:
        if report is not None:
            report(sum(bool(kernel.overloads) for kernel in kernels), len(kernels))

    return count


def all_kernels() -> list[Any]:
    """Every kernel of the package: what numba compiles, with its `overloads`."""
    found = {
        id(value): value
        for package in (kernels, core)
        for info in pkgutil.iter_modules(package.__path__)
        for value in vars(import_module(f"{package.__name__}.{info.name}")).values()
        if hasattr(value, "py_func")
    }
    return list(found.values())


def warm_kernels(tokenizer: Tokenizer) -> None:
    """Run small constraints of both methods, which use almost every kernel."""
    _warm_rare_kernels()
    added = tuple(token.id for token in tokenizer.description.added if token.special)[-1:]
    eos_ids = tokenizer.eos_ids or added
    for dfa in (from_strings(("yes", "no")), *map(compile_regex, _SMALL)):
        dfa.accepts(b"true")
        for method in METHODS:
            _walk(constrain(tokenizer, dfa, method, eos_ids=eos_ids))
    item = {"type": ["string", "object"], "properties": {"a": {"type": "string"}}}
    linked = json_schema({"items": item | {"additionalProperties": False}, "type": "array"})
    for method in METHODS:
        matcher = constrain(tokenizer, linked, method, eos_ids=eos_ids).matcher()
        for token in tokenizer.encode('["a b",{"a":"a b"},"a b","a b","a b"]'):
            matcher.mask()
            matcher.advance(token)
    linked.after(np.array([linked.start], dtype=np.int32), linked.byte_class[:1])
    link_regex("(a{1,500}b|a{1,400}c)+").accepts(b"aabaac")  # of states that are sets
    for method in METHODS:
        verify(tokenizer, constrain(tokenizer, _SMALL[0], method, eos_ids=eos_ids), n=2)
    explain(tokenizer, [*tokenizer.encode("Hi 1"), *tokenizer.encode(" there")])
    explain(tokenizer, [token for letter in "other" for token in tokenizer.encode(letter)])
    _steered(tokenizer, eos_ids)


def _steered(tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
    """Budgets, forced ids, bans and masks of batches."""
    for method in METHODS:
        # With the last one, the search for the least number of ids is long.
        for regex in (r'"(\w| ){0,40}"|[a-z]+é', "(the answers? ){3}", "(answer|is|re ){60}"):
            steered = constrain(tokenizer, regex, method, eos_ids=eos_ids)
            with suppress(BudgetExceededError):  # with some tokenizers it is too long
                _walk(steered.within(steered.matcher().min_tokens_to_accept()))
    ban = Ban(["a b"], whole_word=True, ignore_case=True)
    _walk(ban.constrain(tokenizer, r"[a-z ]{1,20}", eos_ids=eos_ids))
    spellings = Spellings(tokenizer, ban, eos_ids)
    spellings.automaton()
    spellings.step(spellings.begun(spellings.context(b""), b"a"), b" ")
    for regex in (_SMALL[0], r'"(a|é|日|<){0,2}"é?(<there>)?'):
        constrain(tokenizer, regex, eos_ids=eos_ids).automaton()
    logits = np.zeros((1, tokenizer.n_ids), dtype=np.float32)
    words = np.zeros((1, (tokenizer.n_ids + 31) // 32), dtype=np.int32)
    apply_bitmask(logits, words)


def _warm_rare_kernels() -> None:
    """Run the kernels of other tokenizers: merges out of order, no pretokenizer, rank files."""
    from bpe_automata.schemas._scalar_sets import within_length  # builds automata when imported

    vocabulary = ("a", "b", "c", "ab", "abc", "cab")
    merges = [("ab", "c"), ("c", "ab"), ("a", "b")]
    bare = Trained(models.BPE({token: k for k, token in enumerate(vocabulary)}, merges))
    bare.decoder = decoders.Fuse()
    bare.add_tokens([AddedToken("<x>", normalized=False)])
    bare.add_special_tokens(["<end>"])
    tokenizer, ends = Tokenizer.load(bare), [len(vocabulary) + 1]
    for method in METHODS:
        constraint = constrain(tokenizer, r"(ab|c){0,9}(bb|<x>)", method, eos_ids=ends)
        _walk(constraint.within(9))
        automaton = constraint.automaton()
        own = automaton.minimised()
        own.equivalent(automaton), own.intersection(automaton).total(), own.complement()
        matcher_of(own, ends, tokenizer.n_ids).min_tokens_to_accept()
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257}
    all_splits(ranks)
    json_string(within_length(compile_regex(_SMALL[1]), 1, 3))
    small = {"type": "object", "properties": {"a": {"type": "integer"}}}
    json_schema({**small, "propertyNames": {"maxLength": 3}}).to_dfa(depth=2)


def trained() -> Tokenizer:
    """A byte-level tokenizer with about 300 tokens."""
    made = Trained(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([_READ], trainer)
    made.add_tokens([AddedToken("<there>", normalized=False)])
    return Tokenizer.load(made)


def _walk(constraint: Constraint, steps: int = 12) -> None:
    """A short random walk with a matcher."""
    matcher, rng = constraint.matcher(), random.Random(0)
    for _ in range(steps):
        if matcher.is_finished:
            return
        matcher.mask()
        matcher.forced_tokens()
        matcher.min_tokens_to_accept()
        matcher.advance(rng.choice(matcher.allowed_ids().tolist()))
