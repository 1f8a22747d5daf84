// The few shapes of PromQL that the dashboards are made of. In: names of metrics. Out: expressions that are narrowed to the
// namespace and release chosen (and the policy, where the metric has one), and whose ranges follow the dashboard's.

const inNamespace = 'namespace=~"$namespace", release=~"$release"';
/** Each process by itself: `{{pod}}` in the legend, which is the address of the scrape where there are no pods. */
export const eachPod = 'pod, instance';
/** For metrics of engines: the pools chosen, by the name of their workload. */
export const ofPool = 'job=~"$pool"';
/** For metrics that carry the policy as a label. */
export const ofPolicy = 'policy=~"$policy"';

/** A selector within the namespace. */
export function only(metric: string, matchers = ''): string {
  return `${metric}{${matchers === '' ? inNamespace : `${inNamespace}, ${matchers}`}}`;
}

/** `sum`, or `sum by (labels)`. */
function sum(expr: string, by: string): string {
  return by === '' ? `sum(${expr})` : named(`sum by (${by}) (${expr})`, by);
}

/** Writes the address over the name of the pod where there is none. */
function named(expr: string, by: string): string {
  if (!by.includes(eachPod)) return expr;
  const joined = `label_join(${expr}, "pod", "@", "pod", "instance")`;
  return `label_replace(${joined}, "pod", "$1$2", "pod", "([^@]+)@.*|@(.*)")`;
}

/** Of a counter: how often a second. */
export function perSecond(metric: string, by = '', matchers = ''): string {
  return sum(`rate(${only(metric, matchers)}[$__rate_interval])`, by);
}

/** Of a counter: how often in the dashboard's time range. */
export function inRange(metric: string, by = '', matchers = ''): string {
  return sum(`increase(${only(metric, matchers)}[$__range])`, by);
}

/**
 * The same for what happens seldom and under many labels, so that its series begin at 1: what a series had when it began
 * within the range counts, too, and 0 is shown where there is none.
 */
export function fewInRange(metric: string, by = '', matchers = ''): string {
  const series = only(metric, matchers);
  const [grown, first] = [`increase(${series}[$__range])`, `min_over_time(${series}[$__range])`];
  const [label] = by.split(', ');
  const none = by === '' ? 'vector(0)' : `label_replace(vector(0), "${label}", "none", "", "")`;
  return `${sum(`(${grown} + (${first} unless ${series} offset $__range)) or ${grown}`, by)} or on () ${none}`;
}

/** Of a gauge: all replicas together. */
export function total(metric: string, by = '', matchers = ''): string {
  return sum(only(metric, matchers), by);
}

/** Of a gauge: the replica with most. */
export function most(metric: string, by = '', matchers = ''): string {
  const selected = only(metric, matchers);
  return by === '' ? `max(${selected})` : named(`max by (${by}) (${selected})`, by);
}

/** Of a gauge of trainers or publishers: as the one that leads has it. One that led before keeps what it had. */
function ofLeader(metric: string, matchers = ''): string {
  const isPublisher = metric.startsWith('backtalk_publisher_');
  const leads = only(isPublisher ? 'backtalk_publisher_leading' : 'backtalk_trainer_leader_active');
  return `${only(metric, matchers)} and on (namespace, release, instance) ${leads} == 1`;
}

export function mostOfLeader(metric: string, by: string, matchers = ''): string {
  return `max by (${by}) (${ofLeader(metric, matchers)})`;
}

/** All policies together. */
export function totalOfLeader(metric: string, by: string, matchers = ''): string {
  return `sum by (${by}) (${ofLeader(metric, matchers)})`;
}

/** Of a metric that services have of the kit, each under its own name. */
export function ofEachService(name: string): string {
  return `{__name__=~"backtalk_.+_${name}", ${inNamespace}}`;
}

/** Of a histogram: what so large a share of the cases stays below. */
export function quantile(share: number, histogram: string, by = '', matchers = ''): string {
  const labels = by === '' ? 'le' : `le, ${by}`;
  return `histogram_quantile(${share}, ${perSecond(`${histogram}_bucket`, labels, matchers)})`;
}

/** The same over the whole time range: for what happens a few times an hour. */
export function quantileInRange(share: number, histogram: string, by = '', matchers = ''): string {
  const labels = by === '' ? 'le' : `le, ${by}`;
  return `histogram_quantile(${share}, ${inRange(`${histogram}_bucket`, labels, matchers)})`;
}

/** Of a histogram: mean over the time range. */
export function meanInRange(histogram: string, matchers = ''): string {
  return `${inRange(`${histogram}_sum`, '', matchers)} / ${inRange(`${histogram}_count`, '', matchers)}`;
}

/** A share of a counter, where everything else has the same labels; 0 where the part is not there at all. */
export function shareOf(metric: string, part: string, matchers = ''): string {
  const whole = matchers === '' ? part : `${part}, ${matchers}`;
  const all = perSecond(metric, '', matchers);
  return `(${perSecond(metric, '', whole)} or 0 * ${all}) / ${all}`;
}

/** The number of the version that answers for each policy, as the leading publisher has it, now or `ago`. */
function stableNumber(ago = '', matchers = ''): string {
  const offset = ago === '' ? '' : ` offset ${ago}`;
  const number = `${only('backtalk_publisher_stable_number', matchers)}${offset}`;
  const leads = `${only('backtalk_publisher_leading')}${offset} == 1`;
  return `max by (namespace, release, policy) (${number} and on (instance) (${leads}))`;
}

export const stableVersion = stableNumber();
/** Of the policies chosen, where a dashboard lets one choose. */
export const stableVersionOfPolicy = stableNumber('', ofPolicy);

/** One point, with the number as label `version`, in the minute in which another version began to answer. */
export const versionChange = `count_values by (namespace, release, policy) ("version", ${stableNumber()} unless ${stableNumber()} == ${stableNumber('1m')})`;

/** A point in each minute around which a counter moved; a scrape may take a minute. */
export function happened(metric: string, matchers = ''): string {
  return `sum(increase(${only(metric, matchers)}[2m])) > 0`;
}
