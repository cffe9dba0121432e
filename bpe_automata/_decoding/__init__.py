"""Floor 3: constraints and the matcher that follows them; `verify` holds them against `encode`,
`explain` says why ids are not canonical."""
