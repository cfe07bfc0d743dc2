"""`tf.saved_model`: the variables of a model in a folder. Programs are not saved; see `save`."""

from gradtape.scope import missing
from gradtape.train.export import LoadOptions, SaveOptions, contains_saved_model, load, save

__all__ = ["LoadOptions", "SaveOptions", "contains_saved_model", "load", "save"]

__getattr__ = missing(__name__, __all__)
