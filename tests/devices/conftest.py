"""These tests need several devices; `tests/test_devices.py` runs them in a process where the CPU counts as three."""

import os

if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    collect_ignore_glob = ["test_*.py"]
