{{/* Replicas have one owner: the values, a HorizontalPodAutoscaler, or KEDA. */}}

{{/* (settings) → "yes" where an autoscaler owns the replicas. */}}
{{- define "backtalk.scales" -}}
{{- with .autoscaling }}{{ if ne .kind "none" }}yes{{ end }}{{ end }}
{{- end }}

{{/* (root, component, kind, settings) */}}
{{- define "backtalk.autoscaler" -}}
{{- $scaling := .settings.autoscaling }}
{{- if eq $scaling.kind "hpa" }}{{ include "backtalk.hpa" . }}{{ else }}{{ include "backtalk.scaledObject" . }}{{ end }}
{{- end }}

{{- define "backtalk.scalingBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: {{ .scaleUpSeconds }}
  policies: [{ type: Percent, value: 100, periodSeconds: 60 }]
scaleDown:
  stabilizationWindowSeconds: {{ .scaleDownSeconds }}
  policies: [{ type: Pods, value: 1, periodSeconds: 120 }]
{{- end }}

{{- define "backtalk.hpa" -}}
{{- $scaling := .settings.autoscaling }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "backtalk.metadata" . | nindent 2 }}
  annotations:
    # Helm makes what replaces it before it goes, and KEDA's webhook takes one scaler for each workload.
    validations.keda.sh/hpa-ownership: 'false'
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: {{ .kind }}, name: {{ include "backtalk.name" . }} }
  minReplicas: {{ $scaling.min }}
  maxReplicas: {{ $scaling.max }}
  metrics:
    {{- if $scaling.metrics }}
    {{- toYaml $scaling.metrics | nindent 4 }}
    {{- else }}
    - type: Resource
      resource: { name: cpu, target: { type: Utilization, averageUtilization: {{ $scaling.cpuPercent }} } }
    {{- end }}
  behavior:
    {{- include "backtalk.scalingBehavior" $scaling | nindent 4 }}
{{- end }}

{{- define "backtalk.scaledObject" -}}
{{- $scaling := .settings.autoscaling }}
{{- $keda := .root.Values.keda }}
{{- $own := default (get $keda.queries .component) $scaling.query }}
{{- $isAge := and (eq .component "judge") (not $own) }}
{{- $metadata := dict
  "serverAddress" (trimSuffix "/" $keda.prometheusUrl)
  "query" (tpl (default (include "backtalk.scalingQuery" .) $own) .root)
  "threshold" (include "backtalk.text" (ternary $scaling.threshold (ternary $scaling.waitSeconds $scaling.perReplica $isAge) (not (empty $own))))
  "ignoreNullValues" "false" }}
{{- /* An age is no sum: it is not shared out among replicas. */}}
{{- $trigger := dict "type" "prometheus" "metricType" (ternary "Value" "AverageValue" (eq .component "judge")) "metadata" $metadata }}
{{- $triggers := list (mergeOverwrite $trigger (deepCopy $keda.trigger)) }}
{{- if and (eq .component "judge") (include "backtalk.natsMonitorUrl" .root) }}
{{- $triggers = append $triggers (include "backtalk.lagTrigger" . | fromYaml) }}
{{- end }}
{{- $spec := dict
  "scaleTargetRef" (dict "apiVersion" "apps/v1" "kind" .kind "name" (include "backtalk.name" .))
  "minReplicaCount" (int $scaling.min)
  "maxReplicaCount" (int $scaling.max)
  "advanced" (dict "horizontalPodAutoscalerConfig" (dict "behavior" (include "backtalk.scalingBehavior" $scaling | fromYaml)))
  "triggers" $triggers -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "backtalk.metadata" . | nindent 2 }}
spec:
  {{- toYaml (mergeOverwrite $spec (deepCopy $keda.spec)) | nindent 2 }}
{{- end }}

{{/*
What a component is scaled by. Engines and gateways: requests that they have, running and waiting, for each replica, so that a
busy pool in which nothing waits keeps its replicas. Judges: how long the oldest vote has waited. Releases are told apart by
the label that the chart's ServiceMonitor adds, and so are pools.
*/}}
{{- define "backtalk.scalingQuery" -}}
{{- $release := printf "namespace=%q,release=%q" .root.Release.Namespace .root.Release.Name }}
{{- if eq .component "gateway" }}sum(backtalk_gateway_requests_in_hand{ {{- $release -}} })
{{- else if eq .component "judge" }}max(backtalk_judge_votes_oldest_age_seconds{ {{- $release -}} })
{{- else }}sum({__name__=~"vllm:num_requests_(running|waiting)|sglang:num_(running|queue)_reqs",{{ $release }},app_kubernetes_io_component={{ .component | quote }}})
{{- end }}
{{- end }}

{{- define "backtalk.lagTrigger" -}}
type: nats-jetstream
metadata:
  natsServerMonitoringEndpoint: {{ include "backtalk.natsMonitorHost" .root | quote }}
  account: {{ .root.Values.nats.external.account | quote }}
  stream: TURNS
  consumer: judge_turnContinued
  lagThreshold: {{ include "backtalk.text" .settings.autoscaling.lag | quote }}
  {{- if hasPrefix "https://" (include "backtalk.natsMonitorUrl" .root) }}
  useHttps: "true"
  {{- end }}
{{- end }}

{{/* KEDA asks from a namespace of its own. */}}
{{- define "backtalk.natsMonitorHost" -}}
{{- if .Values.nats.enabled }}
{{- printf "%s.%s:8222" (include "backtalk.name" (dict "root" . "component" "nats")) .Release.Namespace }}
{{- else }}
{{- regexReplaceAll "^https?://" .Values.nats.external.monitorUrl "" | trimSuffix "/" }}
{{- end }}
{{- end }}
