"""Everything about one net in the browser, in one file."""
