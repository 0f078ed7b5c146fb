"""`python -m tiling` is the command."""

from .cli import main

main(prog_name="tiling")
