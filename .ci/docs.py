"""Lays out the site: the README, the pages of `paper_figures`, the notebooks, and a page of the
API for each public module, whose text is the docstrings. No page is written for the site alone.

    python .ci/docs.py build/docs      # then: mkdocs build -f .ci/mkdocs.yml
"""

import importlib
import pkgutil
import shutil
import sys
from pathlib import Path
from types import ModuleType

import bpe_automata

ROOT = Path(__file__).parents[1]
THEORY = "automata tokenizer canonical constructions token_automata grammars composition decoding"
PACKAGES = (
    *THEORY.split(),
    *["schemas", "sampling", "banning", "viz", "models", "reference", "testing", "errors"],
)


def main(to: Path) -> None:
    """Copy what there is, and write what names the docstrings."""
    shutil.rmtree(to, ignore_errors=True)
    (to / "api").mkdir(parents=True)
    for name in ("README.md", "CHANGELOG.md", "CITATION.cff"):
        shutil.copy(ROOT / name, to)
    shutil.copytree(ROOT / "notebooks", to / "notebooks")
    without_rows = shutil.ignore_patterns("rows")
    shutil.copytree(ROOT / "paper_figures", to / "paper_figures", ignore=without_rows)
    modules = [bpe_automata, *(importlib.import_module(f"bpe_automata.{n}") for n in PACKAGES)]
    for module in modules:
        (to / "api" / f"{module.__name__}.md").write_text(page_of(module), encoding="utf-8")
    hosts = importlib.import_module("bpe_automata.integrations").__path__
    found = sorted(one.name for one in pkgutil.iter_modules(hosts) if not one.name.startswith("_"))
    text = "\n".join(f"::: bpe_automata.integrations.{name}\n" for name in found)
    (to / "api" / "bpe_automata.integrations.md").write_text(
        f"# bpe_automata.integrations\n\n{text}", encoding="utf-8"
    )


def page_of(module: ModuleType) -> str:
    """What the module says of itself, and each public name by the place where it is made."""
    names = getattr(module, "__all__", None) or [
        name
        for name, one in vars(module).items()
        if getattr(one, "__module__", "") == module.__name__
    ]
    lines = [f"# {module.__name__}\n", f"::: {module.__name__}\n    options:\n      members: []\n"]
    for name in sorted(names, key=str.lower):
        made_in = getattr(getattr(module, name), "__module__", "") or ""
        if made_in.startswith("bpe_automata"):
            lines.append(f"::: {made_in}.{name}\n")
    return "\n".join(lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
