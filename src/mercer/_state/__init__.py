"""Model files: the container, limits for reading, the tables of kinds, values as data, and declared states."""
