"""Engines that turn a regex or a JSON Schema into masks, behind one interface."""
