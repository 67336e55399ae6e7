"""Column generation: neurons are added to a linear program until none is missing."""
