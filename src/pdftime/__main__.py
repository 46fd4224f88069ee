"""`python -m pdftime` is the command line."""

from pdftime.cli import main

main()
