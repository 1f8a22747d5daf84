import { holdEngineContract } from './engine-contract.js';
import { startBuiltin, startVllm, wantsVllm } from './engines.js';

holdEngineContract('the built-in engine', startBuiltin, false);
holdEngineContract('vLLM (set BACKTALK_TEST_VLLM=1 to install and run it)', startVllm, !wantsVllm);
