"""`python -m backtalk_worker.training`."""

import os
import sys

from backtalk_worker.process.first_signal import end_at_signal

end_at_signal()

# The rest takes seconds to import, and a signal must be heard meanwhile.
from backtalk_worker.training.main import main  # noqa: E402

code = main()
if "TORCHELASTIC_RUN_ID" in os.environ:
    from backtalk_worker.training.outputs.process_group import leave

    leave(code)
sys.exit(code)
