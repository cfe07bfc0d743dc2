"""Derivatives beyond one gradient, from the records of a tape: forward mode and whole Jacobians."""
