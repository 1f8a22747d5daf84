// No part of `npm test`: it installs vLLM for CPU (2.5 GB) where that is not here.
import { holdEngineContract } from './engine-contract.js';
import { startVllm } from './engines.js';

holdEngineContract('vLLM', startVllm);
