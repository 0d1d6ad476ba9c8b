"""The numbers of all advisory locks. They share one space in the database, so two that are equal by chance would wait for
each other."""

MIGRATIONS = 4_703_120_981
"""Held while a process migrates, so that a second one waits its turn."""
CLAIMS = 4_703_120_982
"""Held by each claim until its transaction ends, so that claims take turns."""
CLEANING = 4_703_120_983
"""Held by each transaction that removes what is past its time, so that janitors take turns."""
