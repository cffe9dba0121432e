"""What masks, forced ids and banned words cost where a model is served."""
