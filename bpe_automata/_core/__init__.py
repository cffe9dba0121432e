"""The canonical engine: see `arrays` for its words, `search`, `slices` and `product`."""
