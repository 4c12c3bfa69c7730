"""`python -m mipmech.cli` is `mipmech`."""

from mipmech.cli import main

main()
