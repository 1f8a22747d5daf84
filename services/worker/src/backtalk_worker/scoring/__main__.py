"""`python -m backtalk_worker.scoring`."""

import sys

from backtalk_worker.scoring.main import main

sys.exit(main())
