// What kube-state-metrics and NVIDIA's exporter export of a release, as their documentation has it: names, labels, and the
// label that a scrape puts aside. In: nothing. Out: an address that answers scrapes. No cluster stands behind it.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const pod = 'namespace="talk",pod="backtalk-engine-serving-0",container="engine"';

/** Scraped with honorLabels, as its own chart does: its labels are those of the objects. */
export const kubeStateMetrics = `# TYPE kube_deployment_spec_replicas gauge
kube_deployment_spec_replicas{namespace="talk",deployment="backtalk-judge"} 2
# TYPE kube_deployment_status_replicas_ready gauge
kube_deployment_status_replicas_ready{namespace="talk",deployment="backtalk-judge"} 1
# TYPE kube_statefulset_replicas gauge
kube_statefulset_replicas{namespace="talk",statefulset="backtalk-gateway"} 2
# TYPE kube_statefulset_status_replicas_ready gauge
kube_statefulset_status_replicas_ready{namespace="talk",statefulset="backtalk-gateway"} 2
# TYPE kube_pod_container_status_restarts_total counter
kube_pod_container_status_restarts_total{${pod},uid="5f2b"} 1
`;

/** Scraped without: what it says of pods stands beside what the scrape says of itself. */
export const dcgmExporter = `# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",device="nvidia0",modelName="NVIDIA H100",Hostname="node",${pod}} 87
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",device="nvidia0",modelName="NVIDIA H100",Hostname="node",${pod}} 61440
`;

export interface Exporter {
  readonly address: string;
  stop(): Promise<void>;
}

export async function serveMetrics(text: string): Promise<Exporter> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${String(port)}`,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
