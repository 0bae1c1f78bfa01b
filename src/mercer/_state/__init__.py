"""Model files: the container, the limits of what is read, the tables of kinds, values as data, and declared states."""
