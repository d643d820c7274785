"""`python -m gap_fuse`, the same as the command."""

from gap_fuse.cli import main

main()
