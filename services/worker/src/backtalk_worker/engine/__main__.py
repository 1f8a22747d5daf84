"""`python -m backtalk_worker.engine`."""

import sys

from backtalk_worker.engine.main import main

sys.exit(main())
