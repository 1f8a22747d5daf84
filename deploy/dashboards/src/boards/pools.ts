// The pools of engines and workers: who is there, how full, and on what hardware. Panels on `vllm:` metrics read the engines
// themselves (the built-in engine uses the same names); those on `DCGM_` and `kube_` metrics need a cluster that exports them.
import { eachPod, inRange, most, ofPool, perSecond, quantile, ofEachService, total } from '../queries.js';
import type { Dashboard, Row } from '../spec.js';

const presence: Row = {
  title: 'Who is there',
  panels: [
    {
      title: 'Engines that may be routed to',
      description:
        '1 for each loader whose engine is alive and holds what it should. 0 with a reason in the loader’s log.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: total('backtalk_loader_engine_ready', eachPod), legend: '{{pod}}' }],
    },
    {
      title: 'Engines that lost what they held',
      description:
        'In the time range. An engine that was restarted has forgotten its versions; its loader puts them back before it is routed to again.',
      kind: 'number',
      unit: 'short',
      width: 8,
      queries: [{ expr: inRange('backtalk_loader_engine_restarts_total'), legend: 'restarts' }],
    },
    {
      title: 'Engines refused for their host',
      description:
        'Engines that announce themselves under a host that BACKTALK_ENGINE_HOSTS does not list, as each service sees them now, and how many have been refused in the time range. Nothing is sent to them.',
      kind: 'lines',
      unit: 'short',
      queries: [
        { expr: `max by (job) (${ofEachService('leased_engines_refused')})`, legend: '{{job}} now' },
        {
          expr: `sum by (job) (increase(${ofEachService('leased_engines_refused_total')}[$__range]))`,
          legend: '{{job}} in the range',
        },
      ],
    },
    {
      title: 'Processes that are scraped',
      description: '1 for each process of Backtalk that answers Prometheus, by job.',
      kind: 'stacked',
      unit: 'short',
      queries: [
        {
          expr: 'sum by (job) (up{namespace=~"$namespace", release=~"$release", job=~".*(gateway|collector|judge|trainer|publisher|loader|engine|serving|rollout|evaluation|training).*"})',
          legend: '{{job}}',
        },
      ],
    },
  ],
};

const load: Row = {
  title: 'Load of the engines',
  panels: [
    {
      title: 'Requests being computed',
      description:
        'By engine. Spread evenly, unless sessions are long: a session stays with its engine for the sake of the prefix cache.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: total('vllm:num_requests_running', eachPod, ofPool), legend: '{{pod}}' }],
    },
    {
      title: 'Requests that wait in engines',
      description: 'By engine. A line that stays above 0 means that the pool is too small.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: total('vllm:num_requests_waiting', eachPod, ofPool), legend: '{{pod}}' }],
    },
    {
      title: 'KV cache in use',
      description: 'Share of the memory for keys and values, by engine. Near 1 requests are sent back to the queue.',
      kind: 'lines',
      unit: 'percentunit',
      max: 1,
      queries: [{ expr: most('vllm:kv_cache_usage_perc', eachPod, ofPool), legend: '{{pod}}' }],
    },
    {
      title: 'Requests sent back to the queue',
      description:
        'In the time range, by engine: they were computed, and begin again because there was no memory for their keys and values. Their answers are the same, and late.',
      kind: 'stacked',
      unit: 'short',
      queries: [{ expr: inRange('vllm:num_preemptions_total', eachPod, ofPool), legend: '{{pod}}' }],
    },
    {
      title: 'Tokens generated',
      description: 'How many a second, by engine: the work that the pool really does.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('vllm:generation_tokens_total', eachPod, ofPool), legend: '{{pod}}' }],
    },
    {
      title: 'Prompt tokens from the cache',
      description:
        'Share of prompt tokens whose keys and values were there already. It falls after a swap, because each version has a cache of its own.',
      kind: 'lines',
      unit: 'percentunit',
      max: 1,
      queries: [
        {
          expr: `${perSecond('vllm:prompt_tokens_cached_total', eachPod, ofPool)} / ${perSecond('vllm:prompt_tokens_total', eachPod, ofPool)}`,
          legend: '{{pod}}',
        },
      ],
    },
    {
      title: 'Time to the first token at the engine',
      description: 'Without the gateway; 95 % of requests, by engine.',
      kind: 'lines',
      unit: 's',
      queries: [{ expr: quantile(0.95, 'vllm:time_to_first_token_seconds', eachPod, ofPool), legend: '{{pod}}' }],
    },
    {
      title: 'Requests ended, by reason',
      description: 'stop and length are ordinary ends; abort means that the gateway hung up.',
      kind: 'stacked',
      unit: 'ops',
      queries: [
        { expr: perSecond('vllm:request_success_total', 'finished_reason', ofPool), legend: '{{finished_reason}}' },
      ],
    },
    {
      title: 'Errors of the built-in engine, by code',
      description:
        'Requests that it answered with an error. engine_busy: its queue was full. The worker’s README explains each; vLLM has no such metric.',
      kind: 'stacked',
      unit: 'ops',
      queries: [{ expr: perSecond('backtalk_engine_errors_total', 'code', ofPool), legend: '{{code}}' }],
    },
  ],
};

const hardware: Row = {
  title: 'Hardware (needs the exporters of a cluster)',
  panels: [
    {
      title: 'GPU utilisation',
      description: 'Needs NVIDIA’s DCGM exporter. Share of time in which a kernel ran, by pod.',
      kind: 'lines',
      unit: 'percent',
      max: 100,
      queries: [
        {
          expr: 'avg by (pod) (DCGM_FI_DEV_GPU_UTIL{exported_namespace=~"$namespace"} or DCGM_FI_DEV_GPU_UTIL{namespace=~"$namespace"})',
          legend: '{{pod}}',
        },
      ],
    },
    {
      title: 'GPU memory in use',
      description: 'Needs NVIDIA’s DCGM exporter. An engine takes nearly all of it at its start, on purpose.',
      kind: 'lines',
      unit: 'mbytes',
      queries: [
        {
          expr: 'sum by (pod) (DCGM_FI_DEV_FB_USED{exported_namespace=~"$namespace"} or DCGM_FI_DEV_FB_USED{namespace=~"$namespace"})',
          legend: '{{pod}}',
        },
      ],
    },
    {
      title: 'Replicas wanted and there',
      description: 'Needs kube-state-metrics. Pods of each workload that are wanted, and that are ready.',
      kind: 'lines',
      unit: 'short',
      queries: [
        {
          expr: 'sum by (deployment) (kube_deployment_spec_replicas{namespace=~"$namespace"})',
          legend: '{{deployment}} wanted',
        },
        {
          expr: 'sum by (deployment) (kube_deployment_status_replicas_ready{namespace=~"$namespace"})',
          legend: '{{deployment}} ready',
        },
        {
          expr: 'sum by (statefulset) (kube_statefulset_replicas{namespace=~"$namespace"})',
          legend: '{{statefulset}} wanted',
        },
        {
          expr: 'sum by (statefulset) (kube_statefulset_status_replicas_ready{namespace=~"$namespace"})',
          legend: '{{statefulset}} ready',
        },
      ],
    },
    {
      title: 'Containers started again',
      description: 'Needs kube-state-metrics. In the time range, by pod.',
      kind: 'stacked',
      unit: 'short',
      queries: [
        {
          expr: 'sum by (pod) (increase(kube_pod_container_status_restarts_total{namespace=~"$namespace"}[$__range]))',
          legend: '{{pod}}',
        },
      ],
    },
    {
      title: 'Engine memory (without a GPU)',
      description: 'Resident memory of engines and training workers that run on CPU.',
      kind: 'lines',
      unit: 'bytes',
      queries: [
        {
          expr: most(
            'process_resident_memory_bytes',
            eachPod,
            'job=~".*(engine|serving|rollout|evaluation|training).*"',
          ),
          legend: '{{pod}}',
        },
      ],
    },
  ],
};

export const pools: Dashboard = {
  name: 'pools',
  title: 'Backtalk / Pools',
  description: 'The pools of engines and workers: who is there, how full, on what hardware.',
  byPolicy: false,
  byPool: true,
  rows: [presence, load, hardware],
};
