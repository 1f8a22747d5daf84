// What rendered NetworkPolicies let through. In: rendered objects. Out: for a pod, who may reach it and whom it may reach,
// on which ports. Peers outside the release are named by their namespace; a rule without peers means anywhere.
import { z } from 'zod';
import type { RenderedObject } from './helm.js';
import { podsOf, type Pod } from './pods.js';

export const anywhere = 'anywhere';

const labels = z.record(z.string(), z.string()).default({});
const peer = z.strictObject({
  podSelector: z.strictObject({ matchLabels: labels }).optional(),
  namespaceSelector: z.strictObject({ matchLabels: labels }).optional(),
});
const port = z.strictObject({ port: z.number(), protocol: z.enum(['TCP', 'UDP']).default('TCP') });
const ingressRule = z.strictObject({ ports: z.array(port), from: z.array(peer).optional() });
const egressRule = z.strictObject({ ports: z.array(port), to: z.array(peer).optional() });
const policyShape = z.looseObject({
  spec: z.strictObject({
    podSelector: z.strictObject({ matchLabels: labels }),
    policyTypes: z.array(z.string()),
    ingress: z.array(ingressRule).default([]),
    egress: z.array(egressRule).default([]),
  }),
});

type Peer = z.infer<typeof peer>;
type Labels = z.infer<typeof labels>;

/** One component may open a connection to another. */
export interface Flow {
  readonly from: string;
  readonly to: string;
  readonly port: number;
}

export function wordsOf({ from, to, port: number }: Flow): string {
  return `${from} → ${to}:${String(number)}`;
}

export class NetworkPolicies {
  private readonly policies: readonly z.infer<typeof policyShape>['spec'][];
  private readonly pods: readonly Pod[];

  constructor(objects: readonly RenderedObject[]) {
    this.pods = podsOf(objects);
    this.policies = objects
      .filter(({ kind }) => kind === 'NetworkPolicy')
      .map((object) => policyShape.parse(object).spec);
  }

  /** Components that no policy selects in one direction or the other: Kubernetes lets everything through there. */
  open(): string[] {
    const types = ['Ingress', 'Egress'];
    const isShut = (pod: Pod, type: string) =>
      this.policies.some(
        ({ podSelector, policyTypes }) => policyTypes.includes(type) && matches(podSelector.matchLabels, pod.labels),
      );
    return this.pods.filter((pod) => types.some((type) => !isShut(pod, type))).map(({ component }) => component);
  }

  /** Everything that pods are allowed to open, seen from their side. */
  egress(): Flow[] {
    return this.policies.flatMap(({ podSelector, egress }) =>
      this.selected(podSelector.matchLabels).flatMap((from) =>
        egress.flatMap(({ ports, to }) =>
          this.peers(to).flatMap((callee) => ports.map(({ port: number }) => ({ from, to: callee, port: number }))),
        ),
      ),
    );
  }

  /** Everything that pods take, seen from their side. */
  ingress(): Flow[] {
    return this.policies.flatMap(({ podSelector, ingress }) =>
      this.selected(podSelector.matchLabels).flatMap((to) =>
        ingress.flatMap(({ ports, from }) =>
          this.peers(from).flatMap((caller) => ports.map(({ port: number }) => ({ from: caller, to, port: number }))),
        ),
      ),
    );
  }

  private selected(selector: Labels): string[] {
    return this.pods.filter((pod) => matches(selector, pod.labels)).map(({ component }) => component);
  }

  private peers(peers: readonly Peer[] | undefined): string[] {
    if (peers === undefined) return [anywhere];
    return peers.flatMap(({ podSelector, namespaceSelector }) =>
      namespaceSelector === undefined
        ? this.selected(podSelector?.matchLabels ?? {})
        : [`namespace ${Object.values(namespaceSelector.matchLabels).join(' ')}`],
    );
  }
}

function matches(selector: Labels, own: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([key, value]) => own[key] === value);
}
