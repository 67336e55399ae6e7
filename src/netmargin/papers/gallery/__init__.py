"""The engine of the figures: what a figure is, its runs, its files, and the page of all of them."""
