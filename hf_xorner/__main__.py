"""`python -m hf_xorner` is the same as `hf-xorner`."""

from .cli import main

if __name__ == "__main__":
    main()
