"""The same as `hf-xorner evaluate`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("evaluate")
