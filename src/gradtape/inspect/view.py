"""``python -m gradtape view SCRIPT.py``: runs a script with all its tapes traced, then writes and opens a page on them.

A script that fails, is interrupted or takes longer than ``--timeout`` still gives a page on what it recorded until then.
"""

from __future__ import annotations

import _thread
import argparse
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from gradtape.core.callsite import Place, place_of, site
from gradtape.core.tape import GradientTape
from gradtape.inspect import page
from gradtape.inspect.gradients import replay, traversed
from gradtape.inspect.graph import Graph, records_of

FAILED, MISUSED, NOTHING, TIMED_OUT = 1, 2, 3, 124
"""Exit codes: the script failed; wrong arguments; no tape to show; it took too long. Zero: a page is there."""

_GRACE = 3.0  # seconds that an interrupted script gets to stop, before it is left alone and the process ends


def main(arguments: list[str] | None = None) -> int:
    """The command line of ``python -m gradtape``; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    split = given.index("--") if "--" in given else len(given)
    parser = _parser()
    options, rest = parser.parse_known_args(given[:split])  # what is not ours is the script's, wherever it stands
    if not rest or rest[0].startswith("-"):
        parser.error("which script? python -m gradtape view SCRIPT.py")
    script, output = Path(rest[0]), Path(options.output or f"{Path(rest[0]).stem}_tape.html")
    problem = _problem(script, output, options)
    if problem:
        print(f"gradtape: {problem}", file=sys.stderr)
        return MISUSED
    return _Run(script, [*rest[1:], *given[split + 1 :]], output, options).go()


def run() -> None:
    """`main`, and the end of the process: threads that a script left behind do not hold it up."""
    code = main()
    if _left_threads():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradtape", description="Tools around gradient tapes.")
    commands = parser.add_subparsers(dest="command", required=True)
    view = commands.add_parser(
        "view",
        help="run a script and show its tapes in a browser",
        usage="python -m gradtape view SCRIPT.py [arguments of the script] [options] [-- more arguments of the script]",
        description=__doc__,
        allow_abbrev=False,
    )
    view.add_argument("--timeout", type=float, metavar="SECONDS", help="stop the script after this long")
    view.add_argument("--output", metavar="FILE", help="the page (default: SCRIPT_tape.html)")
    view.add_argument("--tapes", type=int, default=8, metavar="N", help="show at most N tapes (default: 8), list the others")
    view.add_argument("--no-open", action="store_true", help="write the page, but do not open it")
    return parser


def _problem(script: Path, output: Path, options: Any) -> str:
    if not script.is_file():
        return f"there is no script {str(script)!r}."
    if output.suffix.lower() not in (".html", ".htm"):
        return f"the page is an HTML file: --output must end in .html, received {str(output)!r}."
    if not output.parent.is_dir():
        return f"there is no folder {str(output.parent)!r} to write the page to."
    if options.timeout is not None and not options.timeout > 0:
        return f"--timeout is a number of seconds above zero, received {options.timeout:g}."
    return "" if options.tapes > 0 else f"--tapes is at least 1, received {options.tapes}."


# Which tapes to keep


@dataclass(slots=True)
class _Site:
    """The tapes that one line of the script made: the first, the latest, and how many."""

    place: Place
    count: int = 0
    kept: list[GradientTape] = field(default_factory=list)

    def add(self, tape: GradientTape) -> None:
        self.count += 1
        self.kept[1:] = [tape]  # the only one, or the second and last

    def name(self, i: int) -> str:
        if self.count == 1:
            return str(self.place)
        return f"{self.place}, {'first' if i == 0 else 'last'} of {self.count:,}"


class Collection:
    """The tapes of a program, by the line that makes them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sites: dict[tuple, _Site] = {}
        self._lock = threading.Lock()

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Every tape that is made in this ``with`` block traces, and is kept or counted."""
        original = GradientTape.__init__

        def traced(tape: GradientTape, *args: Any, **kwargs: Any) -> None:
            original(tape, *args, **{**kwargs, "trace": "values"})
            self._add(tape, place_of(*site(2)))

        GradientTape.__init__ = traced  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            GradientTape.__init__ = original  # type: ignore[method-assign]

    def _add(self, tape: GradientTape, place: Place) -> None:
        with self._lock:
            self._sites.setdefault((place.file, place.line), _Site(place)).add(tape)

    def read(self) -> tuple[list[Graph], list[tuple[str, str]]]:
        """The graphs to show, and a row on each line whose tapes are not all shown: too many, empty or enormous."""
        graphs: list[Graph] = []
        rest = []
        for found in list(self._sites.values()):
            shown = 0
            for i, tape in enumerate(found.kept):
                graph = _graph(tape) if len(graphs) < self._limit else None
                if graph is not None:
                    graph.name = found.name(i)
                    graphs.append(graph)
                    shown += 1
            if found.count > shown:
                rest.append((str(found.place), f"{found.count - shown:,} more" if shown else f"{found.count:,}, none shown"))
        return graphs, rest


def _graph(tape: GradientTape) -> Graph | None:
    """The graph of a tape; None if it recorded nothing, too much, or is being changed by a script that cannot be stopped."""
    try:
        if len(records_of(tape)) > page.MANY:
            return None
        graph = traversed(tape)
        replay(tape, graph)
    except RuntimeError:
        return None
    return graph if graph.ops else None


# Running


class _Run:
    """One run of a script, from its first line to the page."""

    def __init__(self, script: Path, arguments: list[str], output: Path, options: Any) -> None:
        self._script, self._arguments, self._output, self._options = script, arguments, output, options
        self._tapes = Collection(options.tapes)
        self._timed_out = False
        self._ended = threading.Event()
        self._finishing = threading.Lock()

    def go(self) -> int:
        if self._options.timeout is not None:
            threading.Thread(target=self._watch, daemon=True).start()
        code = self._run()
        self._ended.set()
        return self._finish(code)

    def _run(self) -> int:
        """The exit code of the script."""
        saved = sys.argv, sys.path[:]
        sys.argv = [str(self._script), *self._arguments]
        sys.path[0] = str(self._script.resolve().parent)
        try:
            with self._tapes.collecting():
                runpy.run_path(str(self._script.resolve()), run_name="__main__")  # whole, in case it changes folders
                _join_threads()
        except SystemExit as stop:
            return _exit_code(stop)
        except KeyboardInterrupt:
            if not self._timed_out:
                self._say("interrupted")
            return TIMED_OUT if self._timed_out else 130
        except BaseException as error:
            print(_traceback(error, self._script), end="", file=sys.stderr)
            self._say("the script failed")
            return FAILED
        finally:
            sys.argv, sys.path[:] = saved
        return 0

    def _finish(self, code: int) -> int:
        """Write the page on what there is; only once, whoever comes first."""
        with self._finishing:
            graphs, rest = self._tapes.read()
            if self._timed_out:
                self._say(f"the script did not end within {self._options.timeout:g} s (--timeout) and was stopped")
            if not graphs:
                self._say("no tape recorded anything that can be shown")
                return code or NOTHING
            state = {0: "", TIMED_OUT: " · stopped after --timeout"}.get(code, f" · ended with exit code {code}")
            page.write(graphs, self._output, subtitle=f"{self._script.name}{state}", rest=rest)
            self._say(f"{len(graphs)} tape{'s' * (len(graphs) != 1)} in {self._output}")
            if not self._options.no_open:
                _open(self._output)
            return code

    def _watch(self) -> None:
        """Interrupt the script after the time; if it does not stop then, finish without it."""
        if self._ended.wait(self._options.timeout):
            return
        self._timed_out = True
        _thread.interrupt_main()
        if not self._ended.wait(_GRACE):
            self._finish(TIMED_OUT)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(TIMED_OUT)

    def _say(self, text: str) -> None:
        print(f"gradtape: {self._script.name}: {text}.", file=sys.stderr)


def _join_threads() -> None:
    """Wait for the threads that the script left running; Python would, too."""
    for thread in _left_threads():
        thread.join()


def _left_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread is not threading.current_thread() and not thread.daemon]


def _exit_code(stop: SystemExit) -> int:
    """As the interpreter sees it: nothing is success, a text is printed and means failure."""
    if stop.code is None or isinstance(stop.code, int):
        return int(stop.code or 0) & 0xFF
    print(stop.code, file=sys.stderr)
    return FAILED


def _traceback(error: BaseException, script: Path) -> str:
    """The traceback as the script alone would have given it."""
    here: TracebackType | None = error.__traceback__
    while here is not None and here.tb_frame.f_code.co_filename != str(script.resolve()):
        here = here.tb_next
    return "".join(traceback.format_exception(type(error), error, here))


def _open(path: Path) -> None:
    """Show the page, where there is a screen: a browser in the terminal would wait for keys."""
    if sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
