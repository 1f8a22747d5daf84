// Creates a consumer, or changes it to what is asked. In: stream and settings. Out: its name and what waits for it.
// The filter stands in the request's subject, so that permissions can tell facts apart.
import type { NatsError, ConsumerConfig, ConsumerInfo } from 'nats';
import type { Broker } from './connect.js';
import { apiError } from './store-message.js';
import { brokerError } from './translate.js';

export type ConsumerPlan = Partial<ConsumerConfig> & { readonly name: string; readonly filter_subject: string };

type Answer = Partial<ConsumerInfo> & { readonly error?: NatsError['api_error'] };

export interface CreatedConsumer {
  readonly name: string;
  readonly pending: number;
}

export async function createConsumer(broker: Broker, stream: string, plan: ConsumerPlan): Promise<CreatedConsumer> {
  const subject = `$JS.API.CONSUMER.CREATE.${stream}.${plan.name}.${plan.filter_subject}`;
  const data = JSON.stringify({ stream_name: stream, config: plan, action: '' });
  const doing = `create a consumer of ${stream}`;
  const reply = await broker.ask({ subject, data, timeoutMs: 5_000, doing });
  const answer = reply.json<Answer>();
  if (answer.error !== undefined) throw brokerError(apiError(answer.error), { doing, subject, stream });
  return { name: plan.name, pending: answer.num_pending ?? 0 };
}
