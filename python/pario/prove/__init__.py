"""Measure and predict: replays, tuning, benchmarks, cost models, a modelled file system."""
