"""Function calls: what a constraint does to how often a model's arguments are right."""
