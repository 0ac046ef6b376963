"""The same as `hf-xorner distill`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("distill")
