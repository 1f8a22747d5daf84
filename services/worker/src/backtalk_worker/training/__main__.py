"""`python -m backtalk_worker.training`."""

import sys

from backtalk_worker.training.main import main

sys.exit(main())
