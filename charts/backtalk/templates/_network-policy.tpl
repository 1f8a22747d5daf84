{{/* (root, component, metricPorts, flows): both ends of the flows of one component. */}}
{{- define "backtalk.networkPolicy" -}}
{{- $policy := .root.Values.networkPolicy }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "backtalk.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "backtalk.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- with include "backtalk.ingressRules" . | trim }}
  ingress:
    {{- . | nindent 4 }}
  {{- else }}
  ingress: []
  {{- end }}
  egress:
    - ports:
        {{- range $policy.dnsPorts }}
        - { port: {{ . }}, protocol: UDP }
        - { port: {{ . }}, protocol: TCP }
        {{- end }}
      to: {{ toJson $policy.dns }}
    {{- with $policy.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- range .flows }}
    {{- if has $.component .from }}
    - {{- include "backtalk.peers" (dict "root" $.root "direction" "to" "components" .to "port" .port) | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- range include "backtalk.outsidePorts" . | fromJsonArray }}
    - ports: [{ port: {{ . }} }]
    {{- end }}
{{- end }}

{{/* Who may call a component: its callers, clients, and those who read metrics. */}}
{{- define "backtalk.ingressRules" -}}
{{- $policy := .root.Values.networkPolicy }}
{{- range .flows }}
{{- if has $.component .to }}
- {{- include "backtalk.peers" (dict "root" $.root "direction" "from" "components" .from "port" .port) | nindent 2 }}
{{- end }}
{{- end }}
{{- if eq .component "gateway" }}
- ports: [{ port: 30000 }]
  {{- with $policy.clients }}
  from: {{ toJson . }}
  {{- end }}
{{- end }}
{{- with .metricPorts }}
- ports:
    {{- range . }}
    - { port: {{ . }} }
    {{- end }}
  from: {{ toJson $policy.prometheus }}
{{- end }}
{{- if and (eq .component "nats") (eq .root.Values.judge.autoscaling.kind "keda") }}
- ports: [{ port: 8222 }]
  from: {{ toJson $policy.keda }}
{{- end }}
{{- end }}

{{/* (root, direction, components, port) */}}
{{- define "backtalk.peers" -}}
ports: [{ port: {{ .port }} }]
{{ .direction }}:
  {{- range .components }}
  - podSelector:
      matchLabels:
        {{- include "backtalk.selector" (dict "root" $.root "component" .) | nindent 8 }}
  {{- end }}
{{- end }}
