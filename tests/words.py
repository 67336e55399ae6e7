"""Pages of text as tests read them."""


def words_of(page: str) -> str:
    """A page without line breaks and double spaces."""
    return " ".join(page.split())
