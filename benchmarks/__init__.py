"""Against named peers, as ratios in one run: ``python -m benchmarks``."""
