// The environment that a container gets from Kubernetes: secrets and fields filled in, references to earlier variables
// put in. In: a container and what secrets and pod hold. Out: the variables as the process sees them.
import type { Container } from './pods.js';

export interface PodFacts {
  readonly podIp: string;
  readonly podName: string;
  /** By name of the Secret, then by key. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export function environmentOf(container: Container, facts: PodFacts): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const { name, value, valueFrom } of container.env) {
    const secret = valueFrom?.secretKeyRef;
    if (secret !== undefined) environment[name] = facts.secrets[secret.name]?.[secret.key] ?? '';
    else if (valueFrom?.fieldRef !== undefined) environment[name] = fieldOf(valueFrom.fieldRef.fieldPath, facts);
    else
      environment[name] = (value ?? '').replaceAll(
        /\$\(([A-Za-z0-9_]+)\)/g,
        (all, key: string) => environment[key] ?? all,
      );
  }
  return environment;
}

function fieldOf(path: string, { podIp, podName }: PodFacts): string {
  return path === 'status.podIP' ? podIp : podName;
}
