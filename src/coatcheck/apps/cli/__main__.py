"""`python -m coatcheck.apps.cli`."""

from . import main

main()
