"""The forms of a result, each checked against the model in memory before it is published."""
