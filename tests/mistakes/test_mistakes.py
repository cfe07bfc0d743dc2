"""Small programs in the shape of real mistakes. The line that the report must name ends in ``# HERE cause``."""

import inspect as source_of
import re

import pytest

from gradtape.inspect import Cause
from mistakes import cutting, leaving, names, recording, watching

MARK = re.compile(r"# HERE (\w+)$")
PROGRAMS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": program
    for module in (cutting, leaving, names, recording, watching)
    for name, program in vars(module).items()
    if source_of.isfunction(program) and program.__module__ == module.__name__
}


def expected(program) -> tuple[Cause, int]:
    lines, first = source_of.getsourcelines(program)
    ((cause, line),) = [(found[1], first + i) for i, text in enumerate(lines) if (found := MARK.search(text.rstrip()))]
    return Cause(cause), line


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_report_names_cause_and_line(name):
    program = PROGRAMS[name]
    cause, line = expected(program)
    report = program()
    (finding,) = report
    assert (finding.cause, finding.place.line) == (cause, line), str(report)
    assert finding.place.file == program.__code__.co_filename
    assert finding.place.text in source_of.getsource(program)
    assert cause.says in str(report)


def test_there_are_enough_of_them_for_every_cause():
    assert len(PROGRAMS) >= 40
    covered = {expected(program)[0] for program in PROGRAMS.values()}
    assert set(Cause) - covered == {Cause.PREDICT}  # comes with Keras; tested in test_explain.py
