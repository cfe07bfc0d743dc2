"""`tf.distribute.experimental`: older and rarer names."""

from gradtape.distribute.communication import CommunicationImplementation, CommunicationOptions
from gradtape.distribute.inputs import ValueContext
from gradtape.distribute.strategy import CentralStorageStrategy, MultiWorkerMirroredStrategy
from gradtape.scope import missing

CollectiveCommunication = CommunicationImplementation
CollectiveHints = CommunicationOptions

__all__ = [
    "CentralStorageStrategy", "CollectiveCommunication", "CollectiveHints", "CommunicationImplementation",
    "CommunicationOptions", "MultiWorkerMirroredStrategy", "ValueContext",
]  # fmt: skip
__getattr__ = missing(__name__, __all__)
