"""Pure parts of the engine: sampling, planning, prefix matching, text of ids, the life of a row. No I/O, no threads."""
