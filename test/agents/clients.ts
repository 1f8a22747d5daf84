// The agent clients as their users run them, each by its own loop: ask, call the tools that the model wants, go on until it says
// something, and hear the person's next words with all that was said before.
// In: an endpoint, what the person says, the tools. Out: what the client has as the model's last words. Nothing is set that
// would help anybody to recognise a session.
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { HumanMessage, type BaseMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, Runner, tool as agentsTool, type AgentInputItem } from '@openai/agents';
import { generateText, stepCountIs, streamText, tool as aiTool, type LanguageModel, type ModelMessage } from 'ai';
import { createAgent, tool as langChainTool } from 'langchain';
import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { RunnableToolFunctionWithParse } from 'openai/lib/RunnableFunction';
import { z } from 'zod';

export interface AgentTool {
  readonly name: string;
  /** Some agents describe only a few of their tools. */
  readonly description?: string;
  readonly run: (place: string) => string;
}

export interface Conversation {
  readonly baseURL: string;
  readonly fetch: typeof globalThis.fetch;
  readonly system: string;
  /** Whether the model's template is asked for thoughts; nothing is said where it is. */
  readonly thinks: boolean;
  readonly tools: readonly AgentTool[];
  /** What the person says, one after the other. */
  readonly says: readonly string[];
}

export type AgentClient = (conversation: Conversation) => Promise<string>;

const model = 'backtalk';
const apiKey = 'none';
const tokensMax = 400;
/** As the made model's logprobs are given: by the model itself. */
const temperature = 1;
const callsMax = 6;
/** Of Anthropic's API, whose clients say how much may be thought. */
const thoughtTokens = 1_024;
const withoutThoughts = { chat_template_kwargs: { enable_thinking: false } };
const place = { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] };
const called = z.object({ place: z.string() });

/** `runTools` of the OpenAI SDK. */
function runTools(stream: boolean): AgentClient {
  return async ({ baseURL, fetch, system, thinks, tools, says }) => {
    const client = new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 });
    const runnable = tools.map(({ name, description, run }) => {
      const own: RunnableToolFunctionWithParse<z.infer<typeof called>>['function'] = {
        name,
        description: description ?? '',
        parameters: place,
        parse: (text: string) => called.parse(JSON.parse(text)),
        function: (args) => run(args.place),
      };
      if (description === undefined) Reflect.deleteProperty(own, 'description');
      return { type: 'function' as const, function: own };
    });
    let messages: ChatCompletionMessageParam[] = [{ role: 'system', content: system }];
    let last = '';
    for (const content of says) {
      const body = {
        model,
        messages: [...messages, { role: 'user' as const, content }],
        tools: runnable,
        max_tokens: tokensMax,
        temperature,
        ...(thinks ? {} : withoutThoughts),
      };
      const runner = stream
        ? client.chat.completions.runTools({ ...body, stream: true })
        : client.chat.completions.runTools({ ...body, stream: false });
      last = (await runner.finalContent()) ?? '';
      messages = runner.messages;
    }
    return last;
  };
}

/** An agent of LangChain; streamed, it is asked for its messages as they come. */
function langChain(stream: boolean): AgentClient {
  return async ({ baseURL, fetch, system, thinks, tools, says }) => {
    const chat = new ChatOpenAI({
      model,
      apiKey,
      maxRetries: 0,
      maxTokens: tokensMax,
      temperature,
      configuration: { baseURL, fetch },
      ...(thinks ? {} : { modelKwargs: withoutThoughts }),
    });
    const agent = createAgent({
      model: chat,
      systemPrompt: system,
      tools: tools.map(({ name, description, run }) =>
        langChainTool((args) => run(args.place), {
          name,
          schema: called,
          ...(description === undefined ? {} : { description }),
        }),
      ),
    });
    let messages: BaseMessage[] = [];
    for (const content of says) {
      const input = { messages: [...messages, new HumanMessage(content)] };
      if (!stream) ({ messages } = await agent.invoke(input));
      else
        for await (const [mode, state] of await agent.stream(input, { streamMode: ['messages', 'values'] }))
          if (mode === 'values') ({ messages } = state);
    }
    return messages.at(-1)?.text ?? '';
  };
}

type Provider = (options: Pick<Conversation, 'baseURL' | 'fetch'> & { readonly apiKey: string }) => LanguageModel;

/** By the chat API, OpenAI's Responses API and Anthropic's Messages API. */
const providers = {
  chat: (options) => createOpenAICompatible({ name: model, ...options })(model),
  responses: (options) => createOpenAI(options).responses(model),
  messages: (options) => createAnthropic(options)(model),
} satisfies Readonly<Record<string, Provider>>;

/** `generateText` and `streamText` of the AI SDK. */
function aiSdk(stream: boolean, api: keyof typeof providers = 'chat'): AgentClient {
  return async ({ baseURL, fetch, system, thinks, tools, says }) => {
    const asked = providers[api]({ baseURL, apiKey, fetch });
    const toolSet = Object.fromEntries(
      tools.map(({ name, description, run }) => [
        name,
        aiTool({
          ...(description === undefined ? {} : { description }),
          inputSchema: called,
          execute: (args) => Promise.resolve(run(args.place)),
        }),
      ]),
    );
    let messages: ModelMessage[] = [];
    let last = '';
    for (const content of says) {
      messages = [...messages, { role: 'user', content }];
      const body = {
        model: asked,
        system,
        messages,
        tools: toolSet,
        stopWhen: stepCountIs(callsMax),
        maxOutputTokens: tokensMax,
        temperature,
        maxRetries: 0,
        providerOptions: {
          ...(thinks ? { anthropic: { thinking: { type: 'enabled', budgetTokens: thoughtTokens } } } : {}),
          ...(thinks ? {} : { [model]: withoutThoughts }),
        },
      };
      const result = stream ? streamText(body) : await generateText(body);
      last = await result.text;
      messages = [...messages, ...(await result.response).messages];
    }
    return last;
  };
}

/** The tool runner of Anthropic's SDK. */
function toolRunner(stream: boolean): AgentClient {
  return async ({ baseURL, fetch, system, thinks, tools, says }) => {
    const client = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ''), apiKey, fetch, maxRetries: 0 });
    const runnable = tools.map(({ name, description = '', run }) =>
      betaZodTool({ name, description, inputSchema: called, run: (args) => run(args.place) }),
    );
    let messages: Anthropic.Beta.BetaMessageParam[] = [];
    let last = '';
    for (const content of says) {
      const body = {
        model,
        system,
        messages: [...messages, { role: 'user' as const, content }],
        tools: runnable,
        max_tokens: thoughtTokens + tokensMax,
        temperature,
        ...(thinks ? { thinking: { type: 'enabled' as const, budget_tokens: thoughtTokens } } : {}),
      };
      const runner = stream
        ? client.beta.messages.toolRunner({ ...body, stream: true })
        : client.beta.messages.toolRunner({ ...body, stream: false });
      const answer = await runner.runUntilDone();
      last = answer.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
      messages = [...runner.params.messages];
    }
    return last;
  };
}

/** An agent of OpenAI's agents SDK, which speaks the Responses API: streamed with whole conversations, whole by the ids of responses. */
function agentsSdk(stream: boolean): AgentClient {
  return async ({ baseURL, fetch, system, thinks, tools, says }) => {
    const openAIClient = new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 });
    const modelProvider = new OpenAIProvider({ openAIClient, useResponses: true });
    const runner = new Runner({ modelProvider, tracingDisabled: true });
    const agent = new Agent({
      name: 'An agent',
      instructions: system,
      model,
      modelSettings: { temperature, maxTokens: tokensMax, ...(thinks ? {} : { providerData: withoutThoughts }) },
      tools: tools.map(({ name, description = '', run }) =>
        agentsTool({ name, description, parameters: called, execute: ({ place: asked }) => run(asked) }),
      ),
    });
    let history: AgentInputItem[] = [];
    let previousResponseId: string | undefined;
    let last = '';
    for (const content of says) {
      if (stream) {
        const input: AgentInputItem[] = [...history, { role: 'user', content }];
        const result = await runner.run(agent, input, { stream: true, maxTurns: callsMax });
        await result.completed;
        ({ history } = result);
        last = result.finalOutput ?? '';
      } else {
        const goesOn = previousResponseId === undefined ? {} : { previousResponseId };
        const result = await runner.run(agent, content, { maxTurns: callsMax, ...goesOn });
        previousResponseId = result.lastResponseId;
        last = result.finalOutput ?? '';
      }
    }
    return last;
  };
}

export const clients: Readonly<Record<string, AgentClient>> = {
  'openai runTools': runTools(false),
  'openai runTools, streamed': runTools(true),
  'LangChain createAgent': langChain(false),
  'LangChain createAgent, streamed': langChain(true),
  'AI SDK generateText': aiSdk(false),
  'AI SDK streamText': aiSdk(true),
  'OpenAI agents SDK, by response ids': agentsSdk(false),
  'AI SDK streamText, Responses': aiSdk(true, 'responses'),
  'OpenAI agents SDK, streamed': agentsSdk(true),
  'Anthropic SDK toolRunner, streamed': toolRunner(true),
  'Anthropic SDK toolRunner': toolRunner(false),
  'AI SDK streamText, Messages': aiSdk(true, 'messages'),
};
