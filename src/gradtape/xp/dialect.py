"""The array dialect: the closed list of functions in which kernels and derivative rules are written.

Spelling is NumPy's. Arrays are positional, everything else is a keyword; there are no methods and no fancy indexing.
A namespace (`NUMPY`, `JAX`, `RECORDED`, `BATCHED`) implements exactly these names; `tests/test_dialect.py` says so.
Besides them, rules may use the Python operators ``+ - * / ** @`` and comparisons on arrays.
"""

UNARY = (
    "negative abs sign exp expm1 log log1p sqrt rsqrt square reciprocal "
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "erf erfc erfinv erfcinv ndtri lgamma digamma sigmoid softplus floor ceil rint "
    "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 "
    "bessel_y1 dawsn expint fresnel_sin fresnel_cos spence "
    "isnan isinf isfinite logical_not bitwise_not conj real imag angle zeros_like ones_like"
).split()

BINARY = (
    "add subtract multiply divide floor_divide remainder power maximum minimum atan2 "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd nextafter complex igamma igammac"
).split()

ELEMENTWISE = (
    *UNARY,
    *BINARY,
    *"where polygamma random_gamma_grad gamma_sample truncated_sample zeta betainc astype bitcast".split(),
)

REDUCTIONS = "sum prod max min any all argmax argmin cumsum cumprod sort argsort flip".split()

SHAPE = (
    "reshape transpose matrix_transpose adjoint expand_dims squeeze broadcast_to concatenate stack tile pad roll repeat"
).split()

INDEXING = (
    "getitem put_slice take take_transpose take_along_axis along_axis_transpose gather_nd scatter_nd one_hot"
).split()

CONTRACTIONS = "matmul adjoint_matmul matmul_adjoint einsum".split()

ATTENTION = "attention attention_gradient".split()

CONVOLUTION = "conv conv_input conv_filter windows windows_transpose".split()

LINALG = (
    "cholesky lu qr svd svdvals eigh eigvalsh eig eigvals slogdet inv pinv expm sqrtm logm "
    "solve triangular_solve tridiagonal_solve"
).split()

FOURIER = "fft ifft rfft irfft".split()

CREATION = "zeros ones full arange eye".split()

INSPECTION = "shape dtype".split()

NAMES = (
    *ELEMENTWISE, *REDUCTIONS, *SHAPE, *INDEXING, *CONTRACTIONS, *ATTENTION, *CONVOLUTION, *LINALG, *FOURIER, *CREATION,
    *INSPECTION,
)  # fmt: skip
