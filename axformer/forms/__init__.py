"""The forms in which a result is handed out, each checked against the model in memory before anybody sees it."""
