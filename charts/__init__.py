"""The charts of the page, written with Altair: `python -m charts` compiles them to Vega.

The compiled charts are part of the package (src/netmargin/page/static/specs), so that those who
make a page need neither Altair nor vl-convert, whose compiler alone is 84 MB.
"""
