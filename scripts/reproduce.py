"""The same as `hf-xorner reproduce`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("reproduce")
