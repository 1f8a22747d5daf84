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
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "backtalk.metadata" . | nindent 2 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: {{ .kind }}, name: {{ include "backtalk.name" . }} }
  minReplicaCount: {{ $scaling.min }}
  maxReplicaCount: {{ $scaling.max }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        {{- include "backtalk.scalingBehavior" $scaling | nindent 8 }}
  triggers:
    - type: prometheus
      {{- /* An age is no sum: it is not shared out among replicas. */}}
      metricType: {{ ternary "Value" "AverageValue" (has .component (list "judge" "engine-judge")) }}
      metadata:
        serverAddress: {{ .root.Values.keda.prometheusUrl | quote }}
        query: {{ tpl (default (index .root.Values.keda.queries (ternary "judge" .component (hasPrefix "engine-judge" .component))) $scaling.query) .root | quote }}
        threshold: {{ include "backtalk.text" $scaling.threshold | quote }}
    {{- if and (eq .component "judge") (include "backtalk.natsMonitorUrl" .root) }}
    - type: nats-jetstream
      metadata:
        natsServerMonitoringEndpoint: {{ include "backtalk.natsMonitorHost" .root | quote }}
        account: $G
        stream: TURNS
        consumer: judge_turnContinued
        lagThreshold: {{ include "backtalk.text" $scaling.lag | quote }}
    {{- end }}
{{- end }}

{{/* KEDA asks from a namespace of its own. */}}
{{- define "backtalk.natsMonitorHost" -}}
{{- if .Values.nats.enabled }}
{{- printf "%s.%s:8222" (include "backtalk.name" (dict "root" . "component" "nats")) .Release.Namespace }}
{{- else }}
{{- regexReplaceAll "^https?://" .Values.nats.external.monitorUrl "" }}
{{- end }}
{{- end }}
