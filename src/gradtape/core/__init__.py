"""The engine: ops, records, the tape, the reverse sweep, variables and custom rules."""
