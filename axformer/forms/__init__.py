"""The forms of a finished model: other files that compute the same, for other runtimes."""
