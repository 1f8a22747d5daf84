// The bounds that all gRPC channels of the house share, on both sides.
import type { ChannelOptions } from '@grpc/grpc-js';

/** A batch of samples fits; anything larger goes through the blob store. */
const messageBytesMax = 64 * 1024 * 1024;

export const channelSettings: ChannelOptions = {
  'grpc.max_receive_message_length': messageBytesMax,
  'grpc.max_send_message_length': messageBytesMax,
  // A peer that was stopped or cut off is noticed within 15 s.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.initial_reconnect_backoff_ms': 250,
  'grpc.max_reconnect_backoff_ms': 2_000,
};

export const callerEntry = 'backtalk-caller';
export const traceEntry = 'traceparent';
