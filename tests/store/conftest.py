"""What tests of the store share."""

import pytest

from store.tables.teams import Team
from tests.store.makers import Makers


@pytest.fixture
def make(team: Team) -> Makers:
    """Makes jobs of ``team``, and trials."""
    return Makers(team.id)
