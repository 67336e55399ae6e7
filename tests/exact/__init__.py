"""A second opinion in exact arithmetic, which shares no code with `src`."""
