// What can go wrong between a service and the broker. It holds no handling: what becomes of the work follows from `retry`.
import { defineErrors } from '../errors/backtalk-error.js';

export const brokerErrors = defineErrors('broker', {
  brokerUnavailable: {
    code: 'broker_unavailable',
    status: 503,
    retry: 'later',
    message: (p: { doing: string }) => `The broker did not answer in time (${p.doing}).`,
  },
  brokerRefused: {
    code: 'broker_refused',
    retry: 'stop',
    message: (p: { user: string }) =>
      `The broker refuses user ${p.user}: check BACKTALK_NATS_USER and BACKTALK_NATS_PASSWORD.`,
  },
  brokerTooOld: {
    code: 'broker_too_old',
    retry: 'stop',
    message: (p: { version: string; oldest: string }) =>
      `nats-server ${p.version} is too old: run ${p.oldest} or later.`,
  },
  brokerClientUnknown: {
    code: 'broker_client_unknown',
    retry: 'stop',
    message: (p: { version: string; known: string }) =>
      `The library nats is ${p.version}, and its transport is repaired for ${p.known} only: install that one (npm ci).`,
  },
  brokerForbidden: {
    code: 'broker_forbidden',
    retry: 'never',
    message: (p: { subject: string }) => `The broker does not let this service use subject ${p.subject}.`,
  },
  brokerRequestRejected: {
    code: 'broker_request_rejected',
    retry: 'later',
    message: (p: { doing: string; brokerCode: number }) =>
      `The broker rejected a request (${p.doing}, broker code ${p.brokerCode}).`,
  },
  streamMissing: {
    code: 'stream_missing',
    retry: 'stop',
    message: (p: { stream: string }) =>
      `Stream ${p.stream} does not exist on the broker: create the streams before the services start.`,
  },
  streamCopiesImpossible: {
    code: 'stream_copies_impossible',
    retry: 'never',
    message: (p: { stream: string; copies: number }) =>
      `Stream ${p.stream} cannot have ${p.copies} copies: the broker has fewer servers. Set BACKTALK_STREAM_REPLICAS to 1, or give the broker more.`,
  },
  streamRoomMissing: {
    code: 'stream_room_missing',
    retry: 'never',
    message: (p: { stream: string; bytes: number }) =>
      `The broker has no room for stream ${p.stream} with ${p.bytes} bytes: lower its bound, or give the broker a larger volume.`,
  },
  streamFull: {
    code: 'stream_full',
    status: 503,
    retry: 'later',
    message: (p: { stream: string }) => `Stream ${p.stream} is full: nothing more is stored until space is freed.`,
  },
});
