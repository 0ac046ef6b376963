"""Read one kind of corpus file each."""
