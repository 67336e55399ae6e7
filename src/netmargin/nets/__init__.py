"""The caller's net and data: read, called, differentiated."""
