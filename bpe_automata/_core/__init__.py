"""The canonical engine to come: see `steps` for its words, `search`, `slices` and `product`."""
