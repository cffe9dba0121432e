"""The canonical engine: see `steps` for its words, `search`, `slices` and `product`."""
