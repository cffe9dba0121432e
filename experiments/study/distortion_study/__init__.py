"""The distortion study: how far constraints take a model from its own distribution, exactly."""
