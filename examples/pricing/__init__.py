"""Prices are changed by a plan that holds pointers: agents plan it, carry it out and verify it."""
