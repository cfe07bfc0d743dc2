"""`tf.autograph.experimental`: marks on functions and loops that a compiled function reads."""

from gradtape.function.autograph import Feature, do_not_convert, set_loop_options
from gradtape.scope import missing

__all__ = ["Feature", "do_not_convert", "set_loop_options"]
__getattr__ = missing(__name__, __all__)
