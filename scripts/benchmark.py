"""The same as `hf-xorner benchmark`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("benchmark")
