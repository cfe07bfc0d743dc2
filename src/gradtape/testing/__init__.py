"""Tools for people who write ops: gradient checks, and the records that drive a whole suite for an op."""

from gradtape.testing.check import GradientMismatch, check_gradients
from gradtape.testing.records import OpRecord

__all__ = ["GradientMismatch", "OpRecord", "check_gradients"]
