"""The demo: an agent loop on real input, its model a script that acts on what it was shown."""
