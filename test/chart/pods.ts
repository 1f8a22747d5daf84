// The pods in rendered objects. In: objects. Out: the workloads with their pods' specifications, typed as far as tests look.
import { z } from 'zod';
import type { RenderedObject } from './helm.js';

const reference = z.looseObject({ name: z.string(), key: z.string() });
const variable = z.strictObject({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z
    .strictObject({
      secretKeyRef: reference.optional(),
      fieldRef: z.strictObject({ fieldPath: z.string() }).optional(),
    })
    .optional(),
});
const probe = z.looseObject({});
const amounts = z.record(z.string(), z.union([z.string(), z.number()])).default({});

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()).default([]),
  args: z.array(z.string()).default([]),
  env: z.array(variable).default([]),
  ports: z.array(z.looseObject({ name: z.string(), containerPort: z.number() })).default([]),
  startupProbe: probe.optional(),
  livenessProbe: probe.optional(),
  readinessProbe: probe.optional(),
  lifecycle: z.looseObject({}).optional(),
  resources: z.looseObject({ requests: amounts, limits: amounts }),
  securityContext: z.looseObject({ allowPrivilegeEscalation: z.boolean(), readOnlyRootFilesystem: z.boolean() }),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })).default([]),
});
export type Container = z.infer<typeof container>;

const podSpec = z.looseObject({
  serviceAccountName: z.string(),
  automountServiceAccountToken: z.boolean(),
  terminationGracePeriodSeconds: z.number(),
  securityContext: z.looseObject({ runAsNonRoot: z.boolean(), runAsUser: z.number() }),
  initContainers: z.array(container).default([]),
  containers: z.array(container),
  volumes: z.array(z.looseObject({ name: z.string() })),
  topologySpreadConstraints: z.array(z.looseObject({})).default([]),
});
export type PodSpec = z.infer<typeof podSpec>;

export interface Pod {
  /** `StatefulSet loop-backtalk-gateway` */
  readonly name: string;
  readonly component: string;
  readonly object: RenderedObject;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: PodSpec;
}

const templated = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      metadata: z.looseObject({
        labels: z.record(z.string(), z.string()),
        annotations: z.record(z.string(), z.string()).default({}),
      }),
      spec: podSpec,
    }),
  }),
});

const workloads: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'Job']);

export function podsOf(objects: readonly RenderedObject[]): Pod[] {
  return objects.flatMap((object) => {
    const component = object.metadata.labels['app.kubernetes.io/component'] ?? '';
    const name = `${object.kind} ${object.metadata.name}`;
    if (object.kind === 'Pod') {
      const { labels, annotations } = object.metadata;
      const { spec } = z.looseObject({ spec: podSpec }).parse(object);
      return [{ name, component, object, labels, annotations, spec }];
    }
    if (!workloads.has(object.kind)) return [];
    const { spec, metadata } = templated.parse(object).spec.template;
    return [{ name, component, object, labels: metadata.labels, annotations: metadata.annotations, spec }];
  });
}

/** The pod of one component; a test that asks for one that is not there fails here. */
export function podOf(objects: readonly RenderedObject[], component: string): Pod {
  const found = podsOf(objects).find((pod) => pod.component === component);
  if (found === undefined) throw new TypeError(`No pod of ${component} is rendered.`);
  return found;
}

export function containersOf({ spec }: Pod): Container[] {
  return [...spec.initContainers, ...spec.containers];
}

export function containerOf(pod: Pod, name: string): Container {
  const found = containersOf(pod).find((one) => one.name === name);
  if (found === undefined) throw new TypeError(`${pod.name} has no container ${name}.`);
  return found;
}
