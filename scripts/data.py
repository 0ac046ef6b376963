"""The same as `hf-xorner data`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("data")
