"""Run one notebook and write what comes out: `python execute.py notebook.ipynb result.ipynb`.

A program of its own, because a notebook leaves modules and figures behind. The cells run in
IPython's shell in this process and not in a kernel: a kernel sends outputs over a socket and says
by another that a cell is done, and on a loaded machine an output that came late was lost. The first
cell that fails ends the program with its traceback.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# nbformat checks notebooks with jsonschema, which would compile 38 grammars of addresses for it.
sys.modules["rfc3987_syntax"] = None

import nbformat  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from IPython.utils.capture import capture_output  # noqa: E402
from nbformat.v4 import new_output  # noqa: E402
from traitlets.config import Config  # noqa: E402


class Shell(InteractiveShell):
    """With matplotlib's figures as outputs and no window system."""

    def enable_gui(self, gui=None):
        pass


def main(source: Path, target: Path) -> None:
    notebook = nbformat.read(source, as_version=4)
    target = target.absolute()
    os.chdir(source.parent)
    sys.path.insert(0, "")  # as in a kernel: the notebook's folder
    shell = Shell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.enable_matplotlib("inline")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            with capture_output() as captured:
                result = shell.run_cell(cell.source, store_history=True)
            if not result.success:
                sys.stderr.write(captured.stdout + captured.stderr)
            result.raise_error()
            cell.execution_count = result.execution_count
            printed = [("stdout", captured.stdout), ("stderr", captured.stderr)]
            cell.outputs = [new_output("stream", name=n, text=text) for n, text in printed if text]
            for shown in captured.outputs:
                output = new_output("display_data", data=shown.data, metadata=shown.metadata or {})
                cell.outputs.append(output)
    nbformat.write(notebook, target)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
