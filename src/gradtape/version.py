"""`tf.version`: which version this is."""

from importlib.metadata import version as _version

from gradtape.scope import missing

__all__ = ["COMPILER_VERSION", "GIT_VERSION", "VERSION"]
__getattr__ = missing(__name__, __all__)

VERSION = _version("gradtape")
GIT_VERSION = f"v{VERSION}"
COMPILER_VERSION = "none: gradtape is Python"
