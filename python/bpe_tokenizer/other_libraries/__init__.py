"""The names and arguments of other libraries, for errors that say ours."""
