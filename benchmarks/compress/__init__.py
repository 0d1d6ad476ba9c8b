"""What compression without training costs: many checkpoints at four budgets on held-out rows, beside a published method, and
what each part of it is worth."""
