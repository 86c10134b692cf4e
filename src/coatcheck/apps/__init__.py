"""Programs of ours: the only readers of the environment and of settings."""
