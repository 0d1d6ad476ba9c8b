"""Laws of the house as a whole."""

from tests.house import classes_twice


def test_no_two_product_files_define_a_public_class_of_the_same_name():
    """One name means one thing, wherever it is read."""
    assert classes_twice() == {}
