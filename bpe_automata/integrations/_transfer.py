"""Small arrays of row numbers onto the device of the logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata._optional import require


def to_device(array: np.ndarray, device: Any) -> Any:
    """A torch tensor of the array there. Of ordinary memory a copy to a GPU waits until the device
    has done all that was asked of it before; from pinned memory it is queued behind it."""
    tensor = require("torch", "pip install torch").from_numpy(array)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
