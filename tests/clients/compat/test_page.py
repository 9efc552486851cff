"""The page agrees with the recorded results."""

import matrix


def test_the_page_agrees_with_this_run(record: list[matrix.Entry]) -> None:
    """It requires all of tests/clients/compat in this run. `make matrix` writes the page again."""
    page = matrix.PAGE.read_text()
    assert matrix.without_versions(page) == matrix.without_versions(matrix.rendered(record))
