"""The engine: ops, records, the tape, the reverse sweep, batching, variables and custom rules."""
