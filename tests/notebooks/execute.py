"""Run one notebook and write what comes out: `python execute.py notebook.ipynb result.ipynb`.

A program of its own, because nbclient leaves sockets open, which pytest would report in some later
test. The kernel is that of this interpreter, whatever else is installed as python3. The first cell
that fails ends the program with its traceback.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

SECONDS = 600  # for one cell, on a machine where the kernels of numba are not compiled yet


class ThisInterpreter(KernelSpecManager):
    def get_kernel_spec(self, kernel_name):
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name=kernel_name, language="python")


def main(source: Path, target: Path) -> None:
    notebook = nbformat.read(source, as_version=4)
    kernel = AsyncKernelManager(kernel_spec_manager=ThisInterpreter())
    folder = {"metadata": {"path": str(source.parent)}}
    NotebookClient(notebook, km=kernel, timeout=SECONDS, resources=folder).execute()
    nbformat.write(notebook, target)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
