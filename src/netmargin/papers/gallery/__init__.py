"""The engine of the figures: what a figure is, its runs side by side, its files, and the page that
shows them all.
"""
