"""Derivatives of functions: products, Jacobians, Hessians, per-example gradients, Taylor series, sparsity."""
