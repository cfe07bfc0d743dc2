"""What a page holds, read back from its text."""

from __future__ import annotations

import json
import re
from typing import Any


def data_of(text: str) -> dict[str, Any]:
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
