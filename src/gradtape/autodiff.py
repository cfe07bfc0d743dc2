"""TensorFlow's ``tf.autodiff``."""

from gradtape.core.tape import GradientTape

__all__ = ["GradientTape"]
