"""`bpe-automata generate --model M --regex R --prompt P`, or `--schema FILE`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from bpe_automata.budget import Budget
from bpe_automata.cli.common import (
    Commands,
    add_command,
    add_language,
    add_seconds,
    from_hub,
    is_hub_name,
    language_of,
    load_tokenizer,
    natural,
    show,
)
from bpe_automata.constructions import canonical_automaton
from bpe_automata.decoding.constraint import Method
from bpe_automata.errors import MissingFileError
from bpe_automata.optional import require
from bpe_automata.storage import cache_folder
from bpe_automata.tokenizer import Tokenizer
from bpe_automata.tokenizer.sources import TABLE

_MODEL = "smollm2"
_PACKAGED = TABLE[_MODEL]


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "let a causal language model write a text that matches a regex or a schema"
    parser = add_command(commands, "generate", summary, run)
    add_language(parser)
    parser.add_argument("--prompt", required=True, help="what the model reads first")
    packaged = f"the weights of the package {_PACKAGED.package} ({_MODEL})"
    model = f"a local folder, a .gguf file, {packaged}, or a name on the hub"
    parser.add_argument("--model", help=model)
    add_seconds(parser)
    parser.add_argument("--tokenizer", help="if it is not where the model is; see `inspect`")
    parser.add_argument("--method", choices=get_args(Method), default="canonical")
    parser.add_argument("--max-new-tokens", type=natural, default=128, metavar="N")
    heal = "how many of the prompt's last tokens may be given back, so that the answer can merge"
    parser.add_argument("--heal", type=natural, default=0, metavar="N", help=heal)
    close = "complete within --max-new-tokens, or an error before the first token"
    parser.add_argument("--close", action="store_true", help=close)
    forced = "do not ask the model where only one token is possible; the text is the same"
    parser.add_argument("--forced", action="store_true", help=forced)
    parser.add_argument("--sample", action="store_true", help="sample instead of the likeliest id")
    parser.add_argument("--seed", type=int, help="for --sample")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    budget = Budget(max_seconds=arguments.max_seconds)
    language = language_of(arguments, budget)
    source = _model_source(arguments.model)
    tokenizer = _tokenizer(arguments.tokenizer, source)
    if arguments.method == "canonical":
        canonical_automaton(tokenizer)  # per tokenizer, with a budget of its own
    # torch and transformers are optional; this import names what is missing.
    from bpe_automata.integrations.transformers import generate

    generation = generate(
        _load(source),
        tokenizer,
        arguments.prompt,
        language,
        method=arguments.method,
        max_new_tokens=arguments.max_new_tokens,
        seed=arguments.seed,
        do_sample=arguments.sample,
        heal=arguments.heal,
        close=arguments.close,
        forced=arguments.forced,
        budget=budget,
    )
    if generation.healing is not None:
        print(generation.healing, file=sys.stderr)
    if arguments.json:
        counted = {key: found for key, found in asdict(generation).items() if found is not None}
        shown = {**counted, "healing": generation.healing and str(generation.healing)}
        show({"prompt": arguments.prompt, **shown}, as_json=True)
    else:
        print(generation.text)
    return 0


def _model_source(model: str | None) -> str:
    """Raises MissingFileError, with the models that are at hand, and MissingDependencyError."""
    if model is None:
        found = sorted(str(path) for path in cache_folder("models").glob("*/"))
        hint = f"; at hand: {', '.join(found)}" if found else "; `make demo` makes one of SmolLM2"
        raise MissingFileError(
            f"no model: give --model a local folder or a name on the hub of a causal LM{hint}"
        )
    if Path(model).expanduser().exists():
        return model
    if model == _MODEL:
        return str(_PACKAGED.find())
    if model in TABLE:
        raise MissingFileError(
            f"{model!r} names a tokenizer, of which no package brings the weights: give --model a "
            f"local folder, and --tokenizer {model} if it has none; {_MODEL!r} has both"
        )
    if not is_hub_name(model) or model.endswith(".gguf"):
        raise MissingFileError(f"there is no model at {model}")
    return model


def _tokenizer(given: str | None, model: str) -> Tokenizer:
    try:
        return load_tokenizer(given or model)
    except MissingFileError as error:
        if given:
            raise
        raise MissingFileError(f"{error}; or say where it is with --tokenizer") from error


def _load(source: str) -> Any:
    import torch

    path, options = Path(source).expanduser(), {}
    if path.suffix == ".gguf" and path.is_file():
        require("gguf", "pip install 'bpe-automata[gguf]'")
        source, options = str(path.parent), {"gguf_file": path.name}
    model = from_hub("AutoModelForCausalLM", source, dtype="auto", **options)
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
