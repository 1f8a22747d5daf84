"""Takes command lines as JSON lists, one a line of standard input; each is read as vLLM's server would read it."""

import json
import sys

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

for line in sys.stdin:
    # A flag that vLLM does not know ends the program with its complaint.
    read = make_arg_parser(FlexibleArgumentParser()).parse_args(json.loads(line))
    print(json.dumps({"loras": read.max_loras, "rank": read.max_lora_rank, "modules": read.lora_target_modules}))
