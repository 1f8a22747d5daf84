// Who may call whom over gRPC: one row for each pair of a caller and a callee, with the methods it is for. In: nothing. Out:
// which row a call falls under, and what a part may call and answer. Each pair has a secret of its own: a part hears
// its callers' tokens with every call, so that a token of the caller alone could be taken to its other callees.

interface Calls {
  readonly caller: string;
  readonly callee: string;
  /** As the wire names it. */
  readonly service: string;
  readonly methods: readonly string[];
}

export const calls = {
  publisherToGateway: {
    caller: 'publisher',
    callee: 'gateway',
    service: 'backtalk.v1.GatewayControlService',
    methods: ['Commit', 'Streams'],
  },
  publisherToLoader: {
    caller: 'publisher',
    callee: 'loader',
    service: 'backtalk.v1.LoaderService',
    methods: ['Prepare', 'Retire', 'Watch'],
  },
  cliToPublisher: {
    caller: 'cli',
    callee: 'publisher',
    service: 'backtalk.v1.PublisherControlService',
    methods: ['Rollback', 'Burn'],
  },
  trainerToTraining: {
    caller: 'trainer',
    callee: 'training',
    service: 'backtalk.v1.TrainingWorkerService',
    methods: ['Status', 'Missing', 'PutBlob', 'GetBlob', 'Train', 'Score'],
  },
} as const satisfies Readonly<Record<string, Calls>>;

export type CallPair = keyof typeof calls;
export type GrpcCaller = (typeof calls)[CallPair]['caller'];

export const callPairs = Object.keys(calls) as readonly CallPair[];

/** What a part needs the secrets of: the calls that it makes, and those that it answers. */
export function pairsOf(part: string): CallPair[] {
  return callPairs.filter((pair) => calls[pair].caller === part || calls[pair].callee === part);
}

/** The rows under which a method may be called. `path`: `/<service>/<method>`. */
export function pairsFor(path: string): CallPair[] {
  const [, service = '', method = ''] = path.split('/');
  return callPairs.filter((pair) => {
    const { service: known, methods }: Calls = calls[pair];
    return known === service && methods.includes(method);
  });
}

/** The variable that holds a pair's secret: `BACKTALK_PUBLISHER_TO_GATEWAY_TOKEN`. */
export function tokenVariable(pair: CallPair): string {
  const { caller, callee } = calls[pair];
  return `BACKTALK_${caller}_TO_${callee}_TOKEN`.toUpperCase();
}
