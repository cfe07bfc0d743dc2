"""How NumPy computes at poles: without warnings, for inf and nan are answers; and counted, at no cost.

A processor notes every infinity and nan that it makes of finite numbers, and NumPy looks at that note after each function
anyway. So whether anything of the kind happened between two moments is one comparison; only then need anybody look for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

met = [0]
"""How often a function, computing in a `scope`, has made an infinity or nan; in any thread, so it may count too much."""


def _count(kind: str, flag: int) -> None:
    met[0] += 1


def noted(out: Any) -> Any:
    """The result of a function that NumPy's flags do not watch (SciPy's): infinities and nan in it count, too."""
    if not np.isfinite(out).all():
        met[0] += 1
    return out


try:  # NOTE: private to NumPy. np.errstate sets the same variable, in Python: 0.95 µs, this 0.25.
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    _COUNTING = _make_extobj(all="call", under="ignore", call=_count)
    _set, _reset = _extobj_contextvar.set, _extobj_contextvar.reset

    class scope:
        """Context manager: no floating-point warnings; poles are counted."""

        __slots__ = ("_token",)

        def __enter__(self) -> None:
            self._token = _set(_COUNTING)

        def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
            _reset(self._token)

except ImportError:

    def scope():  # type: ignore[no-redef]
        """Context manager: no floating-point warnings; poles are counted."""
        return np.errstate(all="call", under="ignore", call=_count)
