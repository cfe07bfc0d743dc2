"""`tf.distribute.cluster_resolver`: clusters of machines are out of scope; touching a resolver says what to use instead."""

from gradtape.scope import missing

__all__: list[str] = []
__getattr__ = missing(__name__, __all__)
