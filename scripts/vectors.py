"""The same as `hf-xorner vectors`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("vectors")
