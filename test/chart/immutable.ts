// What Kubernetes does not let an upgrade change: selectors, names of headless Services, claims of StatefulSets, and whether a
// Service has an address of its own.
import { z } from 'zod';
import type { RenderedObject } from './helm.js';

const workload = z.looseObject({
  spec: z.looseObject({
    selector: z.unknown(),
    serviceName: z.string().optional(),
    podManagementPolicy: z.string().optional(),
    volumeClaimTemplates: z.array(z.unknown()).optional(),
  }),
});

const service = z.looseObject({ spec: z.looseObject({ clusterIP: z.string().default('allocated') }) });

export function immutableOf(objects: readonly RenderedObject[]): Record<string, unknown> {
  return { ...workloadsOf(objects), ...servicesOf(objects) };
}

function servicesOf(objects: readonly RenderedObject[]): Record<string, unknown> {
  const entries = objects
    .filter(({ kind }) => kind === 'Service')
    .map((object) => [`Service ${object.metadata.name}`, { clusterIP: service.parse(object).spec.clusterIP }] as const);
  return Object.fromEntries(entries);
}

function workloadsOf(objects: readonly RenderedObject[]): Record<string, unknown> {
  const kept = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
  const entries = kept.map((object) => {
    const { selector, serviceName, podManagementPolicy, volumeClaimTemplates } = workload.parse(object).spec;
    const fields = { selector, serviceName, podManagementPolicy, volumeClaimTemplates };
    return [`${object.kind} ${object.metadata.name}`, JSON.parse(JSON.stringify(fields)) as unknown] as const;
  });
  return Object.fromEntries(entries);
}
