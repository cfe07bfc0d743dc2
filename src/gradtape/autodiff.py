"""TensorFlow's ``tf.autodiff``, and the derivatives of plain functions."""

from gradtape.core.tape import GradientTape
from gradtape.derivatives.checkpointing import checkpoint_sequential
from gradtape.derivatives.functional import (
    hessian,
    hvp,
    jacobian,
    jvp,
    laplacian,
    per_example_gradients,
    value_and_gradient,
    vjp,
)
from gradtape.derivatives.sparse import Coloring, coloring, jacobian_sparsity, sparse_hessian, sparse_jacobian
from gradtape.derivatives.taylor import taylor
from gradtape.scope import missing
from gradtape.tangents.forward import ForwardAccumulator

__all__ = [
    "Coloring", "ForwardAccumulator", "GradientTape", "checkpoint_sequential", "coloring", "hessian", "hvp", "jacobian",
    "jacobian_sparsity", "jvp", "laplacian", "per_example_gradients", "sparse_hessian", "sparse_jacobian", "taylor",
    "value_and_gradient", "vjp",
]  # fmt: skip

__getattr__ = missing(__name__, __all__)
