"""Speed, as ratios against a named peer measured in the same run. `make bench` runs all."""
