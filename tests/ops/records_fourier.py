"""Records of gradtape/ops/fourier.py, in its order."""

import numpy as np

from gradtape.ops import elementwise
from gradtape.ops import fourier as ops
from gradtape.testing import OpRecord

WIDE = ("float64", "float32")


def parts(*shape):
    """A real and an imaginary part: records are made of real arrays."""
    return lambda rng: [tuple(rng.normal(size=shape) for _ in range(2))]


def on_complex(function):
    """A function of one complex array as one of its two parts, giving two parts."""

    def call(x, y):
        out = function(elementwise.complex(x, y))
        return elementwise.real(out), elementwise.imag(out)

    return call


def reference(function):
    def call(x, y):
        out = function(x + 1j * y)
        return out.real, out.imag

    return call


def to_parts(function):
    def call(x):
        out = function(x)
        return elementwise.real(out), elementwise.imag(out)

    return call


RECORDS = [
    OpRecord("fft", on_complex(lambda z: ops.fft(z, axis=-1)), parts(2, 3), reference(np.fft.fft), dtypes=WIDE),
    OpRecord("fft", on_complex(lambda z: ops.fft(z, axis=0)), parts(4, 2), reference(lambda z: np.fft.fft(z, axis=0)),
             case="axis 0", dtypes=WIDE, empties=list),
    OpRecord("ifft", on_complex(lambda z: ops.ifft(z, axis=-1)), parts(2, 3), reference(np.fft.ifft), dtypes=WIDE),
    *(
        OpRecord("rfft", to_parts(lambda x: ops.rfft(x, axis=-1)), lambda rng, n=n: [(rng.normal(size=(2, n)),)],
                 lambda x: (np.fft.rfft(x).real, np.fft.rfft(x).imag), case=f"length {n}", dtypes=WIDE)
        for n in (1, 4, 5)
    ),
    *(
        OpRecord("irfft", lambda x, y, n=n: ops.irfft(elementwise.complex(x, y), axis=-1, n=n), parts(2, n // 2 + 1),
                 lambda x, y, n=n: np.fft.irfft(x + 1j * y, n), case=f"length {n}", dtypes=WIDE)
        for n in (1, 4, 5)
    ),
    OpRecord("irfft", lambda x, y: ops.irfft(elementwise.complex(x, y), axis=0, n=4), parts(3, 2),
             lambda x, y: np.fft.irfft(x + 1j * y, 4, axis=0), case="axis 0", dtypes=WIDE, empties=list),
]  # fmt: skip
