// A service's metrics. In: a short name, a help text, few-valued labels. Out: a prom-client object whose full name is
// `backtalk_<service>_<name>`. Asking twice for one name gives the same object. Labels never hold ids or user text.
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry, type Metric } from 'prom-client';

export class Metrics {
  readonly registry = new Registry();
  private readonly prefix: string;

  constructor(service: string) {
    this.prefix = `backtalk_${service.replaceAll('-', '_')}_`;
    collectDefaultMetrics({ register: this.registry });
  }

  counter(name: string, help: string, labels: readonly string[] = []): Counter {
    const known = this.known(name);
    return known instanceof Counter ? known : new Counter(this.options(name, help, labels));
  }

  gauge(name: string, help: string, labels: readonly string[] = []): Gauge {
    const known = this.known(name);
    return known instanceof Gauge ? known : new Gauge(this.options(name, help, labels));
  }

  histogram(name: string, help: string, buckets: readonly number[], labels: readonly string[] = []): Histogram {
    const known = this.known(name);
    if (known instanceof Histogram) return known;
    return new Histogram({ ...this.options(name, help, labels), buckets: [...buckets] });
  }

  private known(name: string): Metric | undefined {
    return this.registry.getSingleMetric(this.prefix + name);
  }

  private options(name: string, help: string, labels: readonly string[]) {
    return { name: this.prefix + name, help, labelNames: [...labels], registers: [this.registry] };
  }
}
