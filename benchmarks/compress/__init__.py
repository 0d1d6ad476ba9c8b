"""The cost of compression without training: many checkpoints at four budgets on held-out rows, compared with a published
method, and the effect of each part."""
