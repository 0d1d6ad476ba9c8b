"""A look at what a job's references hold, where this process can read it, before the job is posted."""
