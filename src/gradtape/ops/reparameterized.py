"""Samples as differentiable functions of their distribution's parameters, by implicit reparameterisation.

A parameter moves a sample so that its quantile P(x; parameters) stays where it is (Figurnov et al., 2018). The kernels return
the sample that was drawn; the rules read it again as ``out``, so gradients of every order follow.
"""

from __future__ import annotations

import numpy as np

from gradtape.core.op import op


@op(label="RandomGamma")
def gamma_sample(xp, alpha, sample):
    """A sample of Gamma(alpha, 1) as a function of alpha: the rule moves it so that its quantile stays where it is."""
    return xp.gamma_sample(alpha, sample)


gamma_sample.vjp(lambda xp, g, out, alpha: g * xp.random_gamma_grad(alpha, out), None)


@op(label="RandomGammaGrad")
def random_gamma_grad(xp, alpha, sample):
    """dx/dalpha of a sample x of Gamma(alpha, 1) at a fixed quantile: -(∂P(alpha, x)/∂alpha) / p(alpha, x)."""
    return xp.random_gamma_grad(alpha, sample)


def _gamma_grad_alpha(xp, g, alpha, sample):
    """No closed form: a difference of fourth order in double precision, exact to about 1e-9."""
    wide, at_sample = (xp.astype(value, dtype=np.dtype(np.float64)) for value in (alpha, sample))
    step = 1e-3 * wide

    def at(times):
        return xp.random_gamma_grad(wide + times * step, at_sample)

    slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
    return g * xp.astype(slope, dtype=xp.dtype(g))


def _gamma_grad_sample(xp, g, out, alpha, sample):
    """-∂ log p/∂alpha - s · ∂ log p/∂x, from s · p = -∂P/∂alpha."""
    return g * (xp.digamma(alpha) - xp.log(sample) - out * ((alpha - 1) / sample - 1))


random_gamma_grad.vjp(_gamma_grad_alpha, _gamma_grad_sample)


@op(label="StatelessParameterizedTruncatedNormal")
def truncated_sample(xp, mean, stddev, low, high, quantile, sample):
    """A sample of the normal distribution between low and high; ``quantile`` is its place between them, from 0 to 1."""
    return xp.truncated_sample(mean, stddev, low, high, quantile, sample)


def _pulls(xp, out, mean, stddev, low, high, quantile):
    """dx/dlow and dx/dhigh: (1 - q) φ(α) / φ(z) and q φ(β) / φ(z), with α, β and z in standard units."""
    z, alpha, beta = ((value - mean) / stddev for value in (out, low, high))
    half = z * z / 2
    return (1 - quantile) * xp.exp(half - alpha * alpha / 2), quantile * xp.exp(half - beta * beta / 2)


def _mean_rule(xp, g, out, mean, stddev, low, high, quantile):
    at_low, at_high = _pulls(xp, out, mean, stddev, low, high, quantile)
    return g * (1 - at_low - at_high)


def _stddev_rule(xp, g, out, mean, stddev, low, high, quantile):
    at_low, at_high = _pulls(xp, out, mean, stddev, low, high, quantile)
    return g * ((out - mean) - (low - mean) * at_low - (high - mean) * at_high) / stddev


truncated_sample.vjp(
    _mean_rule,
    _stddev_rule,
    lambda xp, g, out, mean, stddev, low, high, quantile: g * _pulls(xp, out, mean, stddev, low, high, quantile)[0],
    lambda xp, g, out, mean, stddev, low, high, quantile: g * _pulls(xp, out, mean, stddev, low, high, quantile)[1],
    None,
    None,
)
