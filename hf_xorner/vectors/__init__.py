"""Read, look up, distill and write word vectors."""
