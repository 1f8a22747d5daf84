"""What the engine and the training worker share as processes: settings, errors, events, log, start and stop."""
