"""Answers `timing.Worker`: runs the cases of the peers that its interpreter has. Started by run.py, not by hand."""

from __future__ import annotations

import json
import os
import sys

# Libraries may print; only answers go to the pipe.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import contestants  # noqa: E402
import keras_steps  # noqa: E402
from timing import Here, installed_peers  # noqa: E402

PEERS = {**contestants.PEERS, **keras_steps.PEERS}
loaded: dict[str, Here] = {}


def answer(request: dict) -> object:
    if request["do"] == "versions":
        return installed_peers()
    peer = request["peer"]
    if request["do"] == "load":
        loaded[peer] = Here(PEERS[peer][1]())
        return list(loaded[peer].cases)
    method = getattr(loaded[peer], request["do"])
    value = method(request["case"], request["calls"])
    return value.tolist() if hasattr(value, "tolist") else value


for line in sys.stdin:
    try:
        reply = {"value": answer(json.loads(line))}
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply), file=answers, flush=True)
