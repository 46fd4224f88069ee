"""Series in: the one in-memory form, files, preparation, generated problems, batch order."""
