"""Real JSON and YAML schemas: what compiles, what is wrong, what it costs."""
