// Creates a consumer, or changes it to what is asked. In: stream and settings. Out: its name and what waits for it.
// The filter stands in the request's subject, so that permissions can tell facts apart.
import { NatsError, type ConsumerConfig, type ConsumerInfo } from 'nats';
import type { Broker } from './connect.js';

export type ConsumerPlan = Partial<ConsumerConfig> & { readonly name: string; readonly filter_subject: string };

type Answer = Partial<ConsumerInfo> & { readonly error?: NatsError['api_error'] };

export interface CreatedConsumer {
  readonly name: string;
  readonly pending: number;
}

export async function createConsumer(broker: Broker, stream: string, plan: ConsumerPlan): Promise<CreatedConsumer> {
  const subject = `$JS.API.CONSUMER.CREATE.${stream}.${plan.name}.${plan.filter_subject}`;
  const request = JSON.stringify({ stream_name: stream, config: plan, action: '' });
  const reply = await broker.nc.request(subject, request, { timeout: 5_000 });
  const answer = reply.json<Answer>();
  if (answer.error !== undefined) throw apiError(answer.error);
  return { name: plan.name, pending: answer.num_pending ?? 0 };
}

function apiError(error: NonNullable<NatsError['api_error']>): NatsError {
  const made = new NatsError(error.description, String(error.code));
  made.api_error = error;
  return made;
}
