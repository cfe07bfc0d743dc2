"""Files of small Keras models that pass between backends.

    KERAS_BACKEND=jax python tools/record_keras_files.py                  # records tests/goldens/keras: files, and results
    KERAS_BACKEND=tensorflow python tools/record_keras_files.py --describe tests/goldens/keras  # the results there instead
    python tools/record_keras_files.py --write FOLDER                     # the same files, written on gradtape
    KERAS_BACKEND=jax python tools/record_keras_files.py --check FOLDER   # do they load there, with equal results?

What was recorded is compared in tests/keras/test_keras_saving.py, which needs neither jax nor a second Keras.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "keras"))


def load_keras() -> Any:
    if os.environ.get("KERAS_BACKEND"):
        import keras
    else:
        from gradtape import keras
    return keras


def write(keras: Any, folder: Path) -> None:
    import saved_models

    folder.mkdir(parents=True, exist_ok=True)
    results = {"keras": keras.__version__, "backend": keras.backend.backend()}
    for name in saved_models.MODELS:
        model = saved_models.trained(keras, name)
        model.save(folder / f"{name}.keras")
        if name == "dense":
            model.save_weights(folder / "dense.weights.h5")
        results[name] = saved_models.described(model, name)
    (folder / "files.json").write_text(json.dumps(results) + "\n")


def describe(keras: Any, folder: Path) -> None:
    """Record what these files give on this backend: jax adds up the gradients of an embedding, TensorFlow does not."""
    import saved_models

    saved_models.custom_layer(keras)
    results = {"keras": keras.__version__, "backend": keras.backend.backend()}
    for name in saved_models.MODELS:
        results[name] = saved_models.described(keras.models.load_model(folder / f"{name}.keras"), name)
    (folder / "files.json").write_text(json.dumps(results) + "\n")


def check(keras: Any, folder: Path) -> None:
    import saved_models

    saved_models.custom_layer(keras)
    results = json.loads((folder / "files.json").read_text())
    for name in saved_models.MODELS:
        found = saved_models.described(keras.models.load_model(folder / f"{name}.keras"), name)
        for part, expected in results[name].items():
            for x, y in zip(found[part], expected, strict=True):
                tolerance = saved_models.TOLERANCE[name]
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=f"{name}: {part}")
        print(f"{name}: written on {results['backend']}, equal on {keras.backend.backend()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, default=ROOT / "tests" / "goldens" / "keras")
    parser.add_argument("--describe", type=Path)
    parser.add_argument("--check", type=Path)
    options = parser.parse_args()
    keras = load_keras()
    if options.check:
        check(keras, options.check)
    elif options.describe:
        describe(keras, options.describe)
    else:
        write(keras, options.write)


if __name__ == "__main__":
    main()
