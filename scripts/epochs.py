"""The same as `hf-xorner epochs`."""

from hf_xorner.cli import main

if __name__ == "__main__":
    main("epochs")
