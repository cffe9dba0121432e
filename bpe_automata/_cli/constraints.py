"""Compiles a constraint and measures that, or generates text under it.

bpe-automata compile TOKENIZER (--regex R | --schema FILE)
bpe-automata generate --model M --prompt P (--regex R | --schema FILE)
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from bpe_automata._budget import Budget
from bpe_automata._cli.common import (
    Commands,
    add_command,
    add_language,
    add_seconds,
    add_tokenizer,
    from_hub,
    is_hub_name,
    language_of,
    load_tokenizer,
    named,
    natural,
    prepare,
    seconds,
    show,
    tokenizer_of,
)
from bpe_automata._cli.progress import step
from bpe_automata._optional import require
from bpe_automata._storage import cache_folder
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.decoding.removed import Removed
from bpe_automata.errors import BudgetExceededError, MissingFileError
from bpe_automata.tokenizer.sources.named import TABLE
from bpe_automata.tokenizer.tokenizer import Tokenizer
from bpe_automata.viz import check_target, counted

_METHODS = get_args(Method)


def add_compile(commands: Commands) -> None:
    """Add the command `compile`."""
    summary = "compile a regex or a schema over a tokenizer, and say what it took"
    parser = add_command(commands, "compile", summary, _run_compile)
    add_tokenizer(parser)
    add_language(parser)
    parser.add_argument("--method", choices=_METHODS, help="one method only (default: both)")
    parser.add_argument(
        "--max-states",
        type=natural,
        default=Budget().max_states,
        help="give up on larger automata (default: %(default)s)",
    )
    add_seconds(parser)
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="write the whole automaton, minimal, of --method (default: canonical): as .npz for "
        "TokenAutomaton.load, or a picture of it as .svg, .png, .pdf, .dot, .html, .txt",
    )


def _run_compile(arguments: argparse.Namespace) -> int:
    if arguments.save:
        check_target(arguments.save, (".npz",))  # before anything that takes time
    tokenizer = tokenizer_of(arguments)
    budget = Budget(max_states=arguments.max_states, max_seconds=arguments.max_seconds)
    compile_regex("(ab|c)*", budget)  # imports what is needed before the clock starts
    begin = time.perf_counter()
    with step(arguments, "compiling the constraint"):
        dfa = language_of(arguments, budget)
    taken = time.perf_counter() - begin
    methods = [arguments.method] if arguments.method else list(_METHODS)
    if "canonical" in methods:
        prepare(arguments, tokenizer)
    report = {
        **named(arguments),
        "dfa_states": dfa.n_states if isinstance(dfa, ByteDFA) else None,
        "byte_classes": dfa.n_classes,
        "dfa_seconds": seconds(taken),
        "methods": {method: _first_mask(tokenizer, dfa, method, budget) for method in methods},
    }
    if arguments.save:
        method: Method = arguments.method or "canonical"
        chosen = constrain(tokenizer, dfa, method, tokenizer.eos_ids, budget=budget)
        with step(arguments, f"writing {arguments.save}"):
            report["saved"] = _saved(chosen, arguments.save)
    show(report if arguments.json else _for_people(report), arguments.json)
    return 0


def _first_mask(
    tokenizer: Tokenizer, dfa: ByteAutomaton, method: Method, budget: Budget
) -> dict[str, Any]:
    ends = tokenizer.eos_ids
    constrain(tokenizer, compile_regex("(ab|c)*"), method, ends).matcher().allowed_ids()  # imports
    begin = time.perf_counter()
    constraint = constrain(tokenizer, dfa, method, ends, budget=budget)
    matcher = constraint.matcher()
    ids = matcher.allowed_ids()
    taken = time.perf_counter() - begin
    return {
        "first_mask_ids": len(ids),
        "first_mask_seconds": seconds(taken),
        "accepts_empty": matcher.is_accepting,
        "removed_by_normalizer": str(removed) if (removed := _removed(constraint)) else None,
    }


def _saved(constraint: Constraint, path: Path) -> dict[str, Any]:
    automaton = constraint.automaton().minimised()
    if path.suffix == ".npz":
        automaton.save(path)
    else:
        automaton.picture().save(path)
    sizes = {"states": automaton.n_states, "transitions": automaton.n_transitions}
    return {"path": str(path), "method": constraint.method, **sizes}


def _removed(constraint: Constraint) -> Removed | str | None:
    try:
        return constraint.removed
    except BudgetExceededError as error:
        return str(error)


def _for_people(report: dict[str, Any]) -> dict[str, Any]:
    masks = {
        f"{method}": f"{counted(found['first_mask_ids'], 'id')} in the first mask, "
        f"{found['first_mask_seconds'] * 1000:.2f} ms"
        + (f"; without {found['removed_by_normalizer']}" if found["removed_by_normalizer"] else "")
        for method, found in report["methods"].items()
    }
    made = report["dfa_states"]
    states = "states as texts lead to them" if made is None else counted(made, "state")
    saved = report.get("saved")
    if saved:
        masks["saved"] = (
            f"{saved['path']}: {saved['method']}, {counted(saved['states'], 'state')}, "
            f"{counted(saved['transitions'], 'transition')}"
        )
    return {
        **{key: report[key] for key in ("regex", "schema", "language") if key in report},
        "byte DFA": f"{states} x {counted(report['byte_classes'], 'class', 'classes')} of bytes, "
        f"{report['dfa_seconds'] * 1000:.2f} ms",
        **masks,
    }


_MODEL = "smollm2"
_PACKAGED = TABLE[_MODEL]


def add_generate(commands: Commands) -> None:
    """Add the command `generate`."""
    summary = "let a causal language model write a text that matches a regex or a schema"
    parser = add_command(commands, "generate", summary, _run_generate)
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


def _run_generate(arguments: argparse.Namespace) -> int:
    budget = Budget(max_seconds=arguments.max_seconds)
    language = language_of(arguments, budget)
    source = _model_source(arguments.model)
    with step(arguments, f"reading {arguments.tokenizer or source}"):
        tokenizer = _tokenizer(arguments.tokenizer, source)
    if arguments.method == "canonical":
        prepare(arguments, tokenizer)
    # torch and transformers are optional; the import says which is missing.
    with step(arguments, f"reading the model {source}"):
        from bpe_automata.integrations.transformers import generate

        model = _load(source)
    ends = model.generation_config.eos_token_id  # one, several, or None: those of the tokenizer
    eos_ids = [ends] if isinstance(ends, int) else ends
    constraint = constrain(tokenizer, language, arguments.method, eos_ids, budget=budget)
    with step(arguments, "generating"):
        generation = generate(
            model,
            arguments.prompt,
            constraint,
            max_new_tokens=arguments.max_new_tokens,
            seed=arguments.seed,
            do_sample=arguments.sample,
            heal=arguments.heal,
            close=arguments.close,
            forced=arguments.forced,
        )
    if generation.healing is not None:
        print(generation.healing, file=sys.stderr)
    if arguments.json:
        fields = {key: found for key, found in asdict(generation).items() if found is not None}
        values = {**fields, "healing": generation.healing and str(generation.healing)}
        show({"prompt": arguments.prompt, **values}, as_json=True)
    else:
        print(generation.text)
    return 0


def _model_source(model: str | None) -> str:
    """The folder, file or name of a model. Raises MissingFileError, which lists available models,
    and MissingDependencyError."""
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
