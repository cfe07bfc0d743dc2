"""What values are: element types, shapes, nests, tensors, and how Python values become tensors. Knows no op and no tape."""
