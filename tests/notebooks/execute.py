"""Run one notebook and print what it shows: `python execute.py notebook.ipynb`.

A program of its own, because a notebook leaves modules and figures behind. The cells run in
IPython's shell in this process and not in a kernel: a kernel sends outputs over a socket and says
by another that a cell is done, and on a loaded machine an output that came late was lost. The first
cell that fails ends the program with its traceback.
"""

import os
import sys
from pathlib import Path

# nbformat checks notebooks with jsonschema, which would compile 38 grammars of addresses for it.
sys.modules["rfc3987_syntax"] = None

import nbformat  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from IPython.utils.capture import capture_output  # noqa: E402
from traitlets.config import Config  # noqa: E402


class Shell(InteractiveShell):
    """With matplotlib's figures as outputs and no window system."""

    def enable_gui(self, gui=None):
        pass


notebook = nbformat.read(sys.argv[1], as_version=4)
os.chdir(Path(sys.argv[1]).parent)
sys.path.insert(0, "")  # as in a kernel: the notebook's folder
shell = Shell.instance(config=Config(HistoryManager={"enabled": False}))
shell.enable_matplotlib("inline")
for cell in notebook.cells:
    if cell.cell_type == "code":
        with capture_output() as captured:
            result = shell.run_cell(cell.source, store_history=True)
        shown = [captured.stdout, captured.stderr]
        for output in captured.outputs:
            shown += [text for kind, text in output.data.items() if kind != "image/png"]
        print(*shown, sep="\n")
        result.raise_error()
