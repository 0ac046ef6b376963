"""The same as `hf-xorner publish`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("publish")
