"""*The Ubiquity of 2-Homogeneity* (2024), which has no figures: its claims, drawn."""
