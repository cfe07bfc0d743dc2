"""Array namespaces: NumPy and jax speaking one closed dialect (`dialect.NAMES`). Knows nothing of tensors or tapes."""
