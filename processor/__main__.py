"""`python -m processor` is the command `callgate`."""

from processor.cli.main import main

if __name__ == "__main__":
    main()
