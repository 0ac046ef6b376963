"""The same as `hf-xorner card`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("card")
