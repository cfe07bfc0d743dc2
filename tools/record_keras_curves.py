"""Records the loss curves of four small networks trained by Keras on TensorFlow.

    KERAS_BACKEND=tensorflow python tools/record_keras_curves.py
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "keras"))


def main() -> None:
    import curve_models
    import keras

    if keras.backend.backend() != "tensorflow":  # on jax, gradients of an embedding are dense
        sys.exit("Set KERAS_BACKEND=tensorflow: the curves are compared with those.")
    curves = {"keras": keras.__version__}
    for name in curve_models.MODELS:
        model = curve_models.built(keras, name)
        model.compile(optimizer=curve_models.optimizer(keras, name), loss=curve_models.loss(keras))
        curves[name] = []
        for x, y in curve_models.batches(name):
            model.reset_metrics()
            curves[name].append(float(model.train_on_batch(x, y)))
        print(f"{name}: {curves[name][0]:.4f} to {curves[name][-1]:.4f}")
    target = ROOT / "tests" / "goldens" / "keras" / "curves.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(curves, indent=1) + "\n")


if __name__ == "__main__":
    main()
