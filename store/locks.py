"""The numbers of all advisory locks. They share one number space in the database, so each must be unique."""

MIGRATIONS = 4_703_120_981
"""Held while a process migrates, so that a second one waits."""
CLAIMS = 4_703_120_982
"""Held by each claim until its transaction ends, so that claims take turns."""
CLEANING = 4_703_120_983
"""Held by each transaction that removes expired data, so that janitors take turns."""
AUDIT = 4_703_120_984
"""Held by the transaction that chains entries of the audit log, so that the chain never forks."""
