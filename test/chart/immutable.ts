// What Kubernetes does not let an upgrade change: selectors, names of headless Services, claims of StatefulSets.
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

export function immutableOf(objects: readonly RenderedObject[]): Record<string, unknown> {
  const kept = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
  const entries = kept.map((object) => {
    const { selector, serviceName, podManagementPolicy, volumeClaimTemplates } = workload.parse(object).spec;
    const fields = { selector, serviceName, podManagementPolicy, volumeClaimTemplates };
    return [`${object.kind} ${object.metadata.name}`, JSON.parse(JSON.stringify(fields)) as unknown] as const;
  });
  return Object.fromEntries(entries);
}
