"""`python -m backtalk_worker.engine`."""

import sys

from backtalk_worker.process.first_signal import end_at_signal

end_at_signal()

# The rest takes seconds to import, and a signal must be heard meanwhile.
from backtalk_worker.engine.main import main  # noqa: E402

sys.exit(main())
