"""The ops: kernel, rules and one-line documentation of each in one block, in NumPy's words."""
