"""Matrix functions composed of matmul, einsum and moves: tensordot, norms, diagonals, bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.op import pair
from gradtape.errors import FailedPreconditionError, InvalidArgumentError, dims, message
from gradtape.ops import contract, elementwise, indexing, reduce, shape
from gradtape.ops.arguments import axes as as_axes
from gradtape.ops.arguments import check_axes, floating, integer, integers
from gradtape.ops.statistics import euclidean_norm
from gradtape.values.convert import Convertible, convert_to_tensor
from gradtape.values.tensor import Tensor, wrap

# Products


def matmul(x: Any, y: Any) -> Tensor:
    """The matrix product; vectors are refused, as in TensorFlow."""
    if type(x) is not Tensor or type(y) is not Tensor:
        x, y = pair(contract.matmul.op, x, y)
    for i, t in ((0, x), (1, y)):
        if t._array.ndim < 2:
            raise InvalidArgumentError(
                message(
                    f"In[{i}] ndims must be >= 2 [Op:MatMul]",
                    received=f"shape {t._array.shape}",
                    fix="tf.linalg.matvec(matrix, vector), or tf.tensordot(x, y, 1)",
                )
            )
    try:
        return contract.matmul(x, y)
    except InvalidArgumentError as error:
        a, b = x._array.shape, y._array.shape
        if error.__cause__ is None:
            raise
        if a[-1] != b[-2]:
            raise InvalidArgumentError(
                message(
                    f"Matrix size-incompatible: In[0]: {dims(a)}, In[1]: {dims(b)} [Op:MatMul]",
                    expected="as many columns in the first as rows in the second",
                )
            ) from error
        text = f"In[0] and In[1] must have compatible batch dimensions: {dims(a)} vs. {dims(b)} [Op:BatchMatMulV2]"
        raise InvalidArgumentError(message(text, expected="leading axes that are equal, or 1")) from error


def oriented(x: Any, transpose: bool, adjoint: bool, which: str) -> Any:
    """x, transposed or conjugate-transposed if asked."""
    if transpose and adjoint:
        text = (
            f"Only one of `transpose_{which}` and `adjoint_{which}` can be True. "
            f"Received `transpose_{which}`={transpose}, `adjoint_{which}`={adjoint}."
        )
        raise ValueError(message(text, fix=f"adjoint_{which}=True alone: it transposes, and conjugates too"))
    return transposed(x, adjoint) if transpose or adjoint else x


def transposed(x: Any, conjugate: bool = False) -> Tensor:
    """The last two axes exchanged."""
    x = convert_to_tensor(x)
    if x._array.ndim < 2:
        text = f"Argument `a` should be a (batch) matrix with rank >= 2.  Received `a` = {x.numpy()} with shape: {x.shape}"
        raise ValueError(message(text, fix="give it an axis: a[tf.newaxis, :]"))
    return shape.adjoint(x) if conjugate else shape.matrix_transpose(x)


def tensordot(x: Any, y: Any, axes: Any) -> Tensor:
    """Sum of products over axes: the last n of x with the first n of y, or two lists of axes."""
    x, y = pair(contract.matmul.op, x, y)
    left, right = _contracted(x, y, axes)
    for t, found in ((x, left), (y, right)):
        for a in found:
            if not 0 <= a < t._array.ndim:
                raise IndexError(
                    message(
                        f"list index out of range: axis {a} for a tensor of shape {t._array.shape}",
                        received=f"axes {axes}, shapes {x._array.shape} and {y._array.shape}",
                        expected=f"axes of each tensor, from 0 to {t._array.ndim - 1} here",
                    )
                )
    free_x = [i for i in range(x._array.ndim) if i not in left]
    free_y = [i for i in range(y._array.ndim) if i not in right]
    kept_x, kept_y = ([t._array.shape[i] for i in free] for t, free in ((x, free_x), (y, free_y)))
    size_x, size_y = (int(np.prod([t._array.shape[i] for i in a], dtype=np.int64)) for t, a in ((x, left), (y, right)))
    rows, columns = (int(np.prod(kept, dtype=np.int64)) for kept in (kept_x, kept_y))
    if [x._array.shape[a] for a in left] != [y._array.shape[a] for a in right]:
        raise InvalidArgumentError(
            message(
                f"Matrix size-incompatible: In[0]: {dims((rows, size_x))}, In[1]: {dims((size_y, columns))} [Op:MatMul]",
                received=f"shapes {x._array.shape} and {y._array.shape}, axes {left} and {right}",
                expected="the same lengths along the axes that are summed over",
            )
        )
    flat_x = shape.reshape(_moved(x, [*free_x, *left]), shape=(rows, size_x))
    flat_y = shape.reshape(_moved(y, [*right, *free_y]), shape=(size_y, columns))
    return shape.reshape(contract.matmul(flat_x, flat_y), shape=(*kept_x, *kept_y))


def _moved(x: Tensor, order: list[int]) -> Tensor:
    return x if order == sorted(order) else shape.transpose(x, axes=tuple(order))


def _contracted(x: Tensor, y: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    """The axes of both operands over which is summed, counted from 0."""
    if hasattr(axes, "__index__") and not np.ndim(getattr(axes, "_array", axes)):
        count, rank = axes.__index__(), x._array.ndim
        if count < 0:
            text = f"`axes` must be at least 0. Received: {count}."
            raise ValueError(message(text, expected="the number of axes to sum over, or a pair of lists of axes"))
        if count > rank:
            text = (
                f"`axes` must not be larger than the number of dimensions of tensor {x.numpy()}.  "
                f"Received {count}, vs tensor dimensions {rank}."
            )
            raise ValueError(message(text, expected=f"at most {rank}"))
        return list(range(rank - count, rank)), list(range(count))
    axes = convert_to_tensor(axes).numpy().tolist() if isinstance(axes, (Tensor, Convertible)) else axes
    if len(axes) != 2:
        text = f"`axes` must be an integer or have length 2. Received {axes}."
        raise ValueError(message(text, fix="axes=1, or axes=[[axes of a], [axes of b]]"))
    left, right = (list(integers(a)) for a in axes)
    if len(left) != len(right):
        text = f"Different number of contraction axes `a` and `b`, {len(left)} != {len(right)}."
        raise ValueError(message(text, fix="one axis of b for each axis of a: axes=[[0, 1], [1, 0]]"))
    return [a + x._array.ndim if a < 0 else a for a in left], [a + y._array.ndim if a < 0 else a for a in right]


# Einsum: any equation to the explicit form without ellipsis


def einsum(equation: str, operands: tuple) -> Tensor:
    """Sum of products by an equation, which may leave out the output and contain ellipses."""
    if not operands:
        raise ValueError(message("At least one input tensor is required.", fix="tf.einsum('ij,jk->ik', a, b)"))
    tensors = [convert_to_tensor(operands[0])]
    for x in operands[1:]:
        tensors.append(convert_to_tensor(x) if isinstance(x, Tensor) else pair(contract.matmul.op, tensors[0], x)[1])
    tensors, explicit = _resolved(equation, tensors)
    return contract.einsum(*tensors, equation=explicit)


def _resolved(equation: str, tensors: list[Tensor]) -> tuple[list[Tensor], str]:
    text = equation.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    for term in (*terms, output):
        if not all(c.isalpha() for c in term.replace("...", "", 1)):
            summary = f"Subscripts have incorrect format: {equation}"
            raise ValueError(message(summary, fix="letters, commas and one arrow: 'ij,jk->ik'; ... stands for leading axes"))
    if len(terms) != len(tensors):
        summary = f'Got {len(tensors)} inputs for equation "{equation}", expecting {len(terms)}'
        raise ValueError(message(summary, received=f"{len(tensors)} tensors", expected=f"{len(terms)} tensors"))
    if not arrow:
        letters = "".join(terms).replace("...", "")
        output = ("..." if "..." in inputs else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    extra = [_extra(i, term, x) for i, (term, x) in enumerate(zip(terms, tensors))]
    most = max(extra, default=0)
    if most and "..." not in output:
        summary = (
            f"Output contains {most} broadcasting dimension(s) but no ellipsis (...) was found in the output subscripts. "
            "[Op:Einsum]"
        )
        raise InvalidArgumentError(message(summary, fix="begin the output with ...: '...ij,...jk->...ik'"))
    fresh = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in text][:most]
    out_term = output.replace("...", "".join(fresh))
    named = [t.replace("...", "".join(fresh[most - n :])) for t, n in zip(terms, extra)]
    _check_output(out_term, named, equation)
    tensors, named = _unbroadcast(tensors, named, set(fresh))
    return tensors, f"{','.join(named)}->{out_term}"


def _extra(i: int, term: str, x: Tensor) -> int:
    """How many axes an ellipsis stands for."""
    count, rank = len(term.replace("...", "")), x._array.ndim
    if "..." not in term and count != rank:
        raise InvalidArgumentError(
            message(
                f"Expected input {i} to have rank {count} but got: {rank} [Op:Einsum]",
                received=f"input {i} of shape {x._array.shape} for {term!r}",
                expected="one letter per axis",
                fix="... stands for any number of leading axes",
            )
        )
    if count > rank:
        text = f"Expected input {i} to have rank at least {count} but got: {rank} [Op:Einsum]"
        raise InvalidArgumentError(
            message(text, received=f"input {i} of shape {x._array.shape} for {term!r}", expected="at most one letter per axis")
        )
    return rank - count


def _check_output(output: str, named: list[str], equation: str) -> None:
    for c in output:
        if output.count(c) > 1:
            text = f"Output subscripts contain a label appearing more than once: {equation}"
            raise ValueError(message(text, received=f"{equation!r}", expected="each letter once in the output"))
        if not any(c in term for term in named):
            text = f"Output subscripts contain the label {c} not present in the input subscripts."
            raise ValueError(message(text, received=f"{equation!r}", expected="letters of the inputs in the output"))


def _unbroadcast(tensors: list[Tensor], named: list[str], free: set[str]) -> tuple[list[Tensor], list[str]]:
    """Ellipsis axes of length 1 are dropped where another operand has them longer; other lengths must agree."""
    sizes: dict[str, int] = {}
    for term, x in zip(named, tensors):
        for axis, (c, n) in enumerate(zip(term, x._array.shape)):
            have = sizes.setdefault(c, n)
            if have != n and not (c in free and 1 in (have, n)):
                raise InvalidArgumentError(
                    message(
                        f"Expected dimension {have} at axis {axis} of the input shaped {dims(x._array.shape)} "
                        f"but got dimension {n} [Op:Einsum]",
                        received=f"shapes {[x._array.shape for x in tensors]} for {named}",
                        expected=f"the same length wherever {c!r} stands",
                    )
                )
            sizes[c] = max(have, n)
    out_tensors, out_terms = [], []
    for term, x in zip(named, tensors):
        drop = tuple(i for i, (c, n) in enumerate(zip(term, x._array.shape)) if c in free and n == 1 and sizes[c] != 1)
        out_tensors.append(shape.squeeze(x, axis=drop) if drop else x)
        out_terms.append("".join(c for i, c in enumerate(term) if i not in drop))
    return out_tensors, out_terms


# Norms


def norm(x: Any, order: Any = "euclidean", axis: Any = None, keepdims: bool = False) -> Tensor:
    """A vector norm over all elements or one axis, or a matrix norm over two."""
    x = convert_to_tensor(x)
    if np.ndim(getattr(axis, "_array", axis)):
        axis = tuple(integers(axis))
    matrix = isinstance(axis, tuple) and len(axis) != 1
    if matrix and (len(axis) != 2 or axis[0] == axis[1]):
        text = f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}"
        raise ValueError(message(text, expected="axis=-1 for vectors, axis=(-2, -1) for matrices"))
    supported = ["euclidean", "fro", 1, 2, np.inf] if matrix else ["euclidean", 1, 2, np.inf]
    if order not in supported and (matrix or isinstance(order, str) or not order > 0):
        if matrix:
            text = f"'ord' must be a supported matrix norm in {supported}, got {order}"
            raise ValueError(message(text, expected=f"one of {supported}"))
        text = f"'ord' must be a supported vector norm, got {order}"
        raise ValueError(message(text, expected="a positive number, 'euclidean' or np.inf"))
    axes = as_axes(axis)
    if order not in (1, np.inf):
        floating("Sqrt", x)
    check_axes("Sum", x._array.ndim, axes)
    if order in ("euclidean", "fro") or (order == 2 and not matrix):
        return euclidean_norm(x, axes, keepdims)
    if matrix:
        return _matrix_norm(x, order, axes, keepdims)  # type: ignore[arg-type]
    size = elementwise.abs(x)
    if order == 1:
        return reduce.sum(size, axis=axes, keepdims=keepdims)
    if order == np.inf:
        return reduce.max(size, axis=axes, keepdims=keepdims)
    return elementwise.power(reduce.sum(elementwise.power(size, order), axis=axes, keepdims=keepdims), 1.0 / order)


def _matrix_norm(x: Tensor, order: Any, axes: tuple[int, int], keepdims: bool) -> Tensor:
    """1: the largest column sum of |x|; inf: the largest row sum; 2: the largest singular value."""
    if order == 2:
        from gradtape.ops.decompositions import spectral_norm  # most programs need no decompositions

        return spectral_norm(x, axes, keepdims)
    rows, columns = (a % x._array.ndim for a in axes)
    summed, other = (rows, columns) if order == 1 else (columns, rows)
    sums = reduce.sum(elementwise.abs(x), axis=summed, keepdims=True)
    out = reduce.max(sums, axis=other, keepdims=True)
    return out if keepdims else shape.squeeze(out, axis=(rows, columns))


# Diagonals: positions are computed once in NumPy, the elements are moved by one gather


def _band(k: Any) -> tuple[int, int]:
    found = integers(k)
    low, high = (found[0], found[0]) if len(found) == 1 else found
    if low > high:
        text = f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}"
        raise InvalidArgumentError(message(text, received=f"k={k}", fix=f"k=({high}, {low})"))
    return low, high


def _length(d: int, rows: int, columns: int) -> int:
    return max(0, min(rows + min(d, 0), columns - max(d, 0)))


def _places(low: int, high: int, rows: int, columns: int, align: str) -> np.ndarray:
    """For each diagonal, from the highest, and each place in it: the flat position in the matrix, or -1 for padding."""
    if align not in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        text = f"align must be one of RIGHT_LEFT, LEFT_RIGHT, LEFT_LEFT, RIGHT_RIGHT. Received: {align}"
        raise ValueError(message(text, expected="'RIGHT_LEFT', 'LEFT_RIGHT', 'LEFT_LEFT' or 'RIGHT_RIGHT'"))
    above, below = align.split("_")
    lengths = {d: _length(d, rows, columns) for d in range(low, high + 1)}
    width = max(lengths.values(), default=0)
    out = np.full((high - low + 1, width), -1, np.int64)
    for d, length in lengths.items():
        start = width - length if (above if d >= 0 else below) == "RIGHT" else 0
        along = np.arange(length)
        out[high - d, start : start + length] = (along - min(d, 0)) * columns + along + max(d, 0)
    return out


def _not_matrix(x: Tensor, label: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        message(
            f"input must be at least 2-dim, received shape: {dims(x._array.shape)} [Op:{label}]",
            fix="tf.linalg.diag(x) makes a matrix of a vector",
        )
    )


def diag_part(x: Tensor, k: Any, padding: Any, align: str) -> Tensor:
    """A diagonal of a matrix, or the rows of a band of diagonals, padded to one length."""
    if x._array.ndim < 2:
        raise _not_matrix(x, "MatrixDiagPartV3")
    *lead, rows, columns = x._array.shape
    low, high = _band(k)
    for name, d in (("lower", low), ("upper", high)):
        if not -rows < d < columns and d != 0:
            raise InvalidArgumentError(
                message(
                    f"{name}_diag_index is out of bound: {d}. It must be between {-rows} and {columns} [Op:MatrixDiagPartV3]",
                    received=f"k={k} of matrices of {rows} rows and {columns} columns",
                    expected=f"diagonals from {1 - rows} to {columns - 1}",
                )
            )
    places = _places(low, high, rows, columns, align)
    flat = shape.reshape(x, shape=(*lead, rows * columns))
    places = places[0] if low == high else places
    found = indexing.take(flat, wrap(np.maximum(places, 0)), axis=len(lead))
    if (places >= 0).all():
        return found
    return elementwise.where(wrap(places >= 0), found, convert_to_tensor(padding, x.dtype))


def diag(x: Tensor, k: Any, rows: Any, columns: Any, padding: Any, align: str) -> Tensor:
    """A matrix with the given diagonal, or band of diagonals, and padding elsewhere."""
    low, high = _band(k)
    if not x._array.ndim or (low != high and x._array.ndim < 2):
        text = f"diagonal must be at least 1-dim, received shape: {dims(x._array.shape)} [Op:MatrixDiagV3]"
        raise InvalidArgumentError(
            message(text, received=f"shape {x._array.shape} for k={k}", expected="one axis for one diagonal, two for several")
        )
    rows, columns, width = integer(rows), integer(columns), x._array.shape[-1]
    lead = x._array.shape[:-1] if low == high else x._array.shape[:-2]
    least_rows, least_columns = width - min(high, 0), width + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows < least_rows or columns < least_columns:
        which = "rows" if rows < least_rows else "columns"
        raise InvalidArgumentError(
            message(
                f"The number of {which} is too small. [Op:MatrixDiagV3]",
                received=f"{rows} rows and {columns} columns",
                expected=f"at least {least_rows} rows and {least_columns} columns for this diagonal",
            )
        )
    return _placed(x, low, high, (*lead, rows, columns), padding, align)[0]


def _placed(x: Tensor, low: int, high: int, full: tuple, padding: Any, align: str) -> tuple[Tensor, np.ndarray]:
    """The matrix with x on its diagonals, and where they are."""
    *lead, rows, columns = full
    places = _places(low, high, rows, columns, align)
    expected = (*lead, *((places.shape[1],) if low == high else places.shape))
    if x._array.shape != expected:
        raise InvalidArgumentError(
            message(
                "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal to the "
                "longests diagonal in range [lower_diag_index:upper_diag_index]. [Op:MatrixSetDiagV3]",
                received=f"diagonal of shape {x._array.shape}",
                expected=f"{expected}",
            )
        )
    source = np.full(rows * columns, -1, np.int64)
    inside = places >= 0
    source[places[inside]] = np.flatnonzero(inside)
    source = source.reshape(rows, columns)
    flat = shape.reshape(x, shape=(*lead, places.size))
    if not places.size:
        return _full(full, padding, x), source >= 0
    found = indexing.take(flat, wrap(np.maximum(source, 0)), axis=len(lead))
    return elementwise.where(wrap(source >= 0), found, convert_to_tensor(padding, x.dtype)), source >= 0


def _full(full: tuple, padding: Any, x: Tensor) -> Tensor:
    return shape.broadcast_to(convert_to_tensor(padding, x.dtype), shape=full)


def set_diag(x: Tensor, diagonal: Any, k: Any, align: str) -> Tensor:
    """x with other values on a diagonal or band of diagonals."""
    if x._array.ndim < 2:
        raise _not_matrix(x, "MatrixSetDiagV3")
    low, high = _band(k)
    values = convert_to_tensor(diagonal, None if isinstance(diagonal, Tensor) else x.dtype)
    placed, there = _placed(values, low, high, x._array.shape, 0, align)
    return elementwise.where(wrap(there), placed, x)


def tensor_diag(x: Tensor) -> Tensor:
    """The tensor of twice the rank with x on its diagonal."""
    old = x._array.shape
    flat = shape.reshape(x, shape=(-1,))
    return shape.reshape(diag(flat, 0, -1, -1, 0, "RIGHT_LEFT"), shape=old + old)


def tensor_diag_part(x: Tensor) -> Tensor:
    """The diagonal of a tensor whose first half of axes has the lengths of the second."""
    old = x._array.shape
    half = len(old) // 2
    if len(old) % 2 or old[:half] != old[half:] or not old:
        raise InvalidArgumentError(
            message(
                "The rank of the tensor should be even and positive [Op:DiagPart]",
                received=f"shape {old}",
                expected="the same lengths twice: (2, 3, 2, 3)",
                fix="tf.linalg.diag_part(x) for the diagonals of matrices",
            )
        )
    size = int(np.prod(old[:half], dtype=np.int64))
    flat = shape.reshape(x, shape=(size, size))
    return shape.reshape(diag_part(flat, 0, 0, "RIGHT_LEFT"), shape=old[:half])


def band_part(x: Tensor, lower: Any, upper: Any) -> Tensor:
    """x with zeros outside a band of diagonals; a negative width keeps the whole triangle."""
    if x._array.ndim < 2:
        raise _not_matrix(x, "MatrixBandPart")
    below, above = integer(lower), integer(upper)
    rows, columns = x._array.shape[-2:]
    for name, n, limit, what in (("num_lower", below, rows, "rows"), ("num_upper", above, columns, "columns")):
        if n > limit:
            raise InvalidArgumentError(
                message(
                    f"{name} must be negative or less or equal to number of {what} ({limit}) got: {n} [Op:MatrixBandPart]",
                    received=f"{name}={n} for a matrix with {limit} {what}",
                    expected=f"at most {limit}, or -1 to keep the whole triangle",
                )
            )
    offset = np.arange(columns) - np.arange(rows)[:, None]
    kept = ((below < 0) | (-offset <= below)) & ((above < 0) | (offset <= above))
    return elementwise.where(wrap(kept), x, elementwise.zeros_like(x))


def trace(x: Tensor) -> Tensor:
    """The sum of the main diagonal."""
    return reduce.sum(diag_part(x, 0, 0, "RIGHT_LEFT"), axis=-1)


def cross(x: Any, y: Any) -> Tensor:
    """The cross product of 3-vectors, which stand on the last axis."""
    x, y = pair(elementwise.multiply.op, x, y)
    if x._array.shape != y._array.shape:
        shapes = f"{dims(x._array.shape)} vs. {dims(y._array.shape)}"
        text = f"Both inputs must be of same shape: {shapes} [Op:Cross]"
        raise InvalidArgumentError(message(text, fix="tf.broadcast_to(a, b.shape)"))
    if not x._array.ndim or x._array.shape[-1] != 3:
        text = "Cross-products are only defined for 3-element vectors. [Op:Cross]"
        raise FailedPreconditionError(
            message(text, received=f"shapes {x._array.shape} and {y._array.shape}", expected="a last axis of length 3")
        )
    axis = x._array.ndim - 1
    x1, x2, y1, y2 = (shape.roll(t, shift=-n, axis=axis) for t in (x, y) for n in (1, 2))
    return elementwise.subtract(elementwise.multiply(x1, y2), elementwise.multiply(x2, y1))
