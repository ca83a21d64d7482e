"""`python -m dppp` is the same as `dppp`."""

from dppp.cli.main import main

if __name__ == "__main__":
    main()
