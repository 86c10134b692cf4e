"""Coatcheck in frameworks: one module each, imported by its name, with an extra of that name."""
