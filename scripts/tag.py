"""The same as `hf-xorner tag`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("tag")
