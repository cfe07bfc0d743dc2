"""Every kind of file that the library reads, each written small and read back, for test_damaged_files.py.

`CHECKED` kinds have checksums: what is damaged in them is found, or does not matter. `UNCHECKED` kinds have none.
"""

from __future__ import annotations

import functools
import gzip
import io
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from train.bundle_program import objects

import gradtape as tf

THEIRS = Path(__file__).parent / "goldens" / "checkpoint"


def frozen(value: Any) -> Any:
    """Arrays, and nests of them, as something that can be compared exactly."""
    if isinstance(value, dict):
        return {key: frozen(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [frozen(part) for part in value]
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    return str(array.dtype), array.shape, array.tolist() if array.dtype == object else array.tobytes()


# Checkpoints


def _values(program: dict) -> dict:
    from gradtape.train.objects import collect

    nodes = collect(tf.train.Checkpoint(**program))
    return {node.path: node.value.numpy() for node in nodes if isinstance(node.value, tf.Variable)}


def _restored(program: dict, path: Any) -> Any:
    """All values after a restore; if there is an error, those are the ones from before it."""
    before = frozen(_values(program))
    try:
        tf.train.Checkpoint(**program).restore(path).assert_consumed()
    except Exception:
        assert frozen(_values(program)) == before
        raise
    return _values(program)


def _training(empty: bool = False) -> dict:
    net = tf.Module()
    net.w = tf.Variable([0.0, 0.0] if empty else [0.5, -1.5])
    net.texts = [tf.Variable(["", "", ""] if empty else ["a", "", "longer"]), tf.Variable("" if empty else "alone")]
    net.half = tf.Variable(tf.cast(0.0 if empty else 1.5, tf.bfloat16))
    optimizer = tf.optimizers.Adam(0.1)
    optimizer.minimize(lambda: tf.reduce_sum(net.w**2), [net.w])
    if empty:
        net.w.assign([0.0, 0.0])
    return {"net": net, "optimizer": optimizer, "noise": tf.random.Generator.from_seed(0 if empty else 3)}


def write_checkpoint(folder: Path) -> None:
    tf.train.Checkpoint(**_training()).write(folder / "ckpt")


def read_checkpoint(folder: Path) -> Any:
    return _restored(_training(empty=True), folder / "ckpt")


def write_theirs(folder: Path) -> None:
    for file in THEIRS.glob("theirs-1.*"):
        shutil.copy(file, folder)


def read_theirs(folder: Path) -> Any:
    return _restored(objects(tf, empty=True), folder / "theirs-1")


def write_their_model(folder: Path) -> None:
    (folder / "variables").mkdir()
    for file in THEIRS.glob("theirs-1.*"):
        shutil.copy(file, folder / "variables" / file.name.replace("theirs-1", "variables"))


def read_their_model(folder: Path) -> Any:
    reader = tf.train.load_checkpoint(folder)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


# Saved models


class Served(tf.Module):
    def __init__(self) -> None:
        self.w = tf.Variable([2.0, 3.0])
        self.texts = tf.Variable(["one", "more"])

    @tf.function(input_signature=[tf.TensorSpec([2])])
    def serve(self, x: Any) -> Any:
        return x * self.w


def write_model(folder: Path) -> None:
    tf.saved_model.save(Served(), folder)


def read_model(folder: Path) -> Any:
    loaded = tf.saved_model.load(folder)
    return loaded.w, loaded.texts, loaded.serve([1.0, 2.0])


def _network(seed: int) -> Any:
    keras = tf.keras
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="first"), keras.layers.Dense(1, name="last")])


@functools.cache
def _empty() -> Any:
    return _network(2)


def write_keras(folder: Path) -> None:
    _network(1).save(folder / "model.keras")


def read_keras(folder: Path) -> Any:
    return tf.keras.models.load_model(folder / "model.keras").variables


def write_h5(folder: Path) -> None:
    _network(1).save_weights(folder / "model.weights.h5")


def read_h5(folder: Path) -> Any:
    network = _empty()
    for variable in network.variables:
        variable.assign(np.zeros(variable.shape))
    before = frozen(network.variables)
    try:
        network.load_weights(folder / "model.weights.h5")
    except Exception:
        assert frozen(network.variables) == before
        raise
    return network.variables


def write_old_h5(folder: Path) -> None:
    _network(1).save(folder / "model.h5")


def _foreign(write: Callable) -> Callable:
    """As Keras elsewhere writes HDF5 files: without a checksum behind them."""

    def written(folder: Path) -> None:
        write(folder)
        (file,) = folder.iterdir()
        whole, _, _ = file.read_bytes().rpartition(b"gradtape crc32 ")
        file.write_bytes(whole)

    return written


def read_old_h5(folder: Path) -> Any:
    return tf.keras.models.load_model(folder / "model.h5", compile=False).variables


# Compiled programs


def write_programs(folder: Path) -> None:
    from jax._src.lru_cache import LRUCache

    from gradtape.function.cache import _Checked

    _Checked(LRUCache(str(folder), max_size=-1)).put("key", zlib.compress(bytes(range(256))))


def read_programs(folder: Path) -> Any:
    """Of a damaged one nothing comes back, so that it is compiled again."""
    from jax._src.lru_cache import LRUCache

    from gradtape.function.cache import _Checked

    found = _Checked(LRUCache(str(folder), max_size=-1)).get("key")
    return list(bytes(range(256)) if found is None else zlib.decompress(found))


# Datasets


def _elements() -> Any:
    parts = {"x": np.arange(12.0, dtype=np.float32).reshape(6, 2), "s": ["a", "", "bcd", "e", "f", "\0"]}
    return tf.data.Dataset.from_tensor_slices((parts, np.arange(6)))


def write_dataset(folder: Path) -> None:
    _elements().save(str(folder))


def read_dataset(folder: Path) -> Any:
    return list(tf.data.Dataset.load(str(folder)))


def write_cache(folder: Path) -> None:
    list(_elements().cache(str(folder / "kept")))


def read_cache(folder: Path) -> Any:
    return list(_elements().cache(str(folder / "kept")))


LINES = b"one line\nand another\r\n\nthe last"


def _lines(compress: Callable, kind: str) -> tuple[Callable, Callable]:
    def write(folder: Path) -> None:
        (folder / "lines").write_bytes(compress(LINES))

    def read(folder: Path) -> Any:
        return list(tf.data.TextLineDataset(str(folder / "lines"), kind))

    return write, read


def write_csv(folder: Path) -> None:
    (folder / "rows.csv").write_text('n,x,text\n1,0.5,"one, two"\n22,-1e3,\n3,,ä\n', encoding="utf-8")


def read_csv(folder: Path) -> Any:
    path, defaults = str(folder / "rows.csv"), [tf.int32, [0.0], [""]]
    rows = list(tf.data.experimental.CsvDataset(path, defaults, header=True))
    made = tf.data.experimental.make_csv_dataset(path, 2, num_epochs=1, shuffle=False, column_names=["n", "x", "text"])
    return rows, list(made)


def write_records(folder: Path) -> None:
    (folder / "records").write_bytes(b"HEAD" + bytes(range(24)))


def read_records(folder: Path) -> Any:
    return list(tf.data.FixedLengthRecordDataset(str(folder / "records"), 8, header_bytes=4))


# Images, sounds, texts


def _picture() -> np.ndarray:
    ramp = np.add.outer(np.arange(8) * 20, np.arange(6) * 3).astype(np.uint8)
    return np.stack([ramp, 255 - ramp, ramp // 2], -1)


def _image(kind: str, decode: Callable, **options: Any) -> tuple[Callable, Callable]:
    def write(folder: Path) -> None:
        from PIL import Image

        file, image = io.BytesIO(), Image.fromarray(_picture())
        image.save(file, kind, **options, append_images=[Image.fromarray(255 - _picture())] if kind == "GIF" else [])
        (folder / "image").write_bytes(file.getvalue())

    def read(folder: Path) -> Any:
        return decode(tf.io.read_file(str(folder / "image")))

    return write, read


def write_deep(folder: Path) -> None:
    tf.io.write_file(str(folder / "image"), tf.io.encode_png(_picture().astype(np.uint16) * 257))


def read_deep(folder: Path) -> Any:
    return tf.io.decode_png(tf.io.read_file(str(folder / "image")), dtype=tf.uint16)


def write_wav(folder: Path) -> None:
    sound = np.sin(np.arange(40.0, dtype=np.float32)).reshape(20, 2)
    tf.io.write_file(str(folder / "sound"), tf.audio.encode_wav(sound, 8000))


def read_wav(folder: Path) -> Any:
    return list(tf.audio.decode_wav(tf.io.read_file(str(folder / "sound"))))


def write_tensors(folder: Path) -> None:
    tf.io.write_file(str(folder / "numbers"), tf.io.serialize_tensor(tf.constant([[1.0, 2.0, 3.0]])))
    tf.io.write_file(str(folder / "texts"), tf.io.serialize_tensor(tf.constant(["a", "", "bcd"])))


def read_tensors(folder: Path) -> Any:
    numbers, texts = (tf.io.read_file(str(folder / name)) for name in ("numbers", "texts"))
    return tf.io.parse_tensor(numbers, tf.float32), tf.io.parse_tensor(texts, tf.string)


def write_state(folder: Path) -> None:
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, max_to_keep=2)
    manager.save()
    manager.save()
    for file in folder.glob("ckpt*"):  # read here is the list of them alone
        file.unlink()


def read_state(folder: Path) -> Any:
    found = tf.train.get_checkpoint_state(folder)
    tf.train.latest_checkpoint(folder)
    if found is None:
        return []
    return [found.model_checkpoint_path.encode(), *(path.encode() for path in found.all_model_checkpoint_paths)]


def write_vocabulary(folder: Path) -> None:
    (folder / "words.txt").write_text("one\t1\nzwei ä\t22\n\n", encoding="utf-8")


def read_vocabulary(folder: Path) -> Any:
    text, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    lines = tf.lookup.TextFileInitializer(str(folder / "words.txt"), tf.string, text, tf.int64, number)
    found = tf.lookup.StaticHashTable(lines, -1).lookup(["one\t1", "zwei ä\t22"])
    columns = tf.lookup.TextFileInitializer(str(folder / "words.txt"), tf.string, 0, tf.int64, 1, vocab_size=2)
    return found, tf.lookup.StaticHashTable(columns, -1).lookup(["one", "zwei ä"])


def write_weights(folder: Path) -> None:
    (folder / "weights.csv").write_text("one,1\ntwo,2\nthree,0.5\n")


def read_weights(folder: Path) -> Any:
    path = str(folder / "weights.csv")
    return [tf.random.fixed_unigram_candidate_sampler([[1]], 1, 2, False, 3, vocab_file=path)[1]]  # the rest is drawn


CHECKED: dict[str, tuple[Callable, Callable]] = {
    "checkpoint": (write_checkpoint, read_checkpoint),
    "TensorFlow's checkpoint": (write_theirs, read_theirs),
    "TensorFlow's saved model": (write_their_model, read_their_model),
    "saved model": (write_model, read_model),
    "keras": (write_keras, read_keras),
    "weights.h5": (write_h5, read_h5),
    "h5": (write_old_h5, read_old_h5),
    "compiled programs": (write_programs, read_programs),
    "saved dataset": (write_dataset, read_dataset),
    "cached dataset": (write_cache, read_cache),
    "gzip lines": _lines(lambda data: gzip.compress(data, mtime=0), "GZIP"),
    "zlib lines": _lines(zlib.compress, "ZLIB"),
    "PNG": _image("PNG", tf.io.decode_png),
    "PNG of 16 bits": (write_deep, read_deep),
}

UNCHECKED: dict[str, tuple[Callable, Callable]] = {
    "state of checkpoints": (write_state, read_state),
    "weights.h5 of others": (_foreign(write_h5), read_h5),
    "h5 of others": (_foreign(write_old_h5), read_old_h5),
    "JPEG": _image("JPEG", tf.io.decode_jpeg),
    "GIF": _image("GIF", tf.io.decode_gif, save_all=True),
    "BMP": _image("BMP", tf.io.decode_bmp),
    "WebP": _image("WEBP", tf.io.decode_image, lossless=True),
    "WAV": (write_wav, read_wav),
    "tensors": (write_tensors, read_tensors),
    "lines": _lines(bytes, ""),
    "CSV": (write_csv, read_csv),
    "records": (write_records, read_records),
    "vocabulary": (write_vocabulary, read_vocabulary),
    "weights of classes": (write_weights, read_weights),
}
