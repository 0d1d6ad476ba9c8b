"""The forms in which a finished model is deployed."""
