"""What several experiments measure with: models, peers, data, statistics."""
