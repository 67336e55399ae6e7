"""Small studies with the library."""
