"""The same as `hf-xorner train`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("train")
