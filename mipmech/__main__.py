"""``python -m mipmech`` is the command line."""

from mipmech.cli import main

main()
