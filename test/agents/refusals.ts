// How people refuse a call, with what each agent's makers give them for it: the call waits, the person denies it, and the agent tells
// the model so in words of its own.
// In: an endpoint, a question that makes the model call a tool. Out: the model's last words; the tool never runs.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Command, MemorySaver } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, tool as aiTool, type ModelMessage } from 'ai';
import { createAgent, humanInTheLoopMiddleware, tool as langChainTool, type AgentMiddleware } from 'langchain';
import { z } from 'zod';

interface Refusal {
  readonly baseURL: string;
  readonly fetch: typeof globalThis.fetch;
  /** Name of the tool that the model calls. */
  readonly tool: string;
  readonly asks: string;
}

const model = 'backtalk';
const apiKey = 'none';
const tokensMax = 400;
const called = z.object({ place: z.string() });

function mustNotRun(): Promise<string> {
  return Promise.reject(new RangeError('A call that was refused ran.'));
}

/** `needsApproval`, and no reason. */
async function aiSdk({ baseURL, fetch, tool, asks }: Refusal): Promise<string> {
  const provider = createOpenAICompatible({ name: model, baseURL, apiKey, fetch });
  const guarded = aiTool({ inputSchema: called, needsApproval: true, execute: mustNotRun });
  const body = { model: provider(model), tools: { [tool]: guarded }, maxOutputTokens: tokensMax, maxRetries: 0 };
  const messages: ModelMessage[] = [{ role: 'user', content: asks }];
  const asked = await generateText({ ...body, messages });
  const denials = asked.content.flatMap((part) =>
    part.type === 'tool-approval-request'
      ? [{ type: 'tool-approval-response' as const, approvalId: part.approvalId, approved: false }]
      : [],
  );
  const history = [...messages, ...asked.response.messages, { role: 'tool' as const, content: denials }];
  return (await generateText({ ...body, messages: history })).text;
}

/** Human in the loop, and no message. */
async function langChain({ baseURL, fetch, tool, asks }: Refusal): Promise<string> {
  // Its types do not fit a compiler that tells absent from undefined.
  const asksFirst: unknown = humanInTheLoopMiddleware({ interruptOn: { [tool]: true } } as never);
  const agent = createAgent({
    model: new ChatOpenAI({ model, apiKey, maxRetries: 0, maxTokens: tokensMax, configuration: { baseURL, fetch } }),
    tools: [langChainTool(mustNotRun, { name: tool, schema: called })],
    middleware: [asksFirst as AgentMiddleware],
    checkpointer: new MemorySaver(),
  });
  const thread = { configurable: { thread_id: 'one' } };
  await agent.invoke({ messages: [{ role: 'user', content: asks }] }, thread);
  const { messages } = await agent.invoke(new Command({ resume: { decisions: [{ type: 'reject' }] } }), thread);
  return messages.at(-1)?.text ?? '';
}

/** By the name that evidence has. */
export const refusals: Readonly<Record<string, (refusal: Refusal) => Promise<string>>> = {
  'ai-sdk': aiSdk,
  langchain: langChain,
};
