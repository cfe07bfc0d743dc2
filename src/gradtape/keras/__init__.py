"""Keras 3, computing on gradtape. Touching this module loads Keras; from then on it *is* Keras, as TensorFlow spells it."""

import sys

from gradtape.keras import loading

_keras = loading.load()
loading.serve_submodules(_keras)
sys.modules[__name__] = _keras
