{{/*
Services inside the release, and for which ports. `headless` gives each pod an address of its own: named pods of StatefulSets,
and engines: judges choose the one with least in flight, and leases count for addresses behind the other names alone. `ready` leaves pods out that cannot work yet.
*/}}
{{- define "backtalk.headless" -}}
- { component: gateway, suffix: pods, headless: true, ports: { grpc: 30020 } }
- { component: judge, suffix: pods, headless: true, ports: { health: 30010 } }
- { component: training, suffix: pods, headless: true, ports: { grpc: 30026 } }
{{- if .Values.nats.enabled }}
- { component: nats, suffix: pods, headless: true, ports: { client: 4222, monitor: 8222 } }
- { component: nats, ready: true, ports: { client: 4222, monitor: 8222 } }
{{- end }}
{{- if .Values.valkey.enabled }}
- { component: valkey, suffix: pods, headless: true, ports: { client: 6379 } }
- { component: valkey, ready: true, ports: { client: 6379 } }
{{- end }}
{{- if has "judge" (include "backtalk.ownPools" . | fromYamlArray) }}
{{- /* Chart 0.1.0 has a Service engine-judge with an address of its own, which no upgrade may take from it. */}}
- { component: engine-judge, suffix: pods, headless: true, ready: true, ports: { engine: 30030 } }
{{- end }}
{{- range include "backtalk.loaderPools" . | fromYamlArray }}
- { component: engine-{{ . }}, headless: true, ports: { engine: 30030 } }
{{- end }}
{{- end }}

{{/* Engines that loaders hold leases for. */}}
{{- define "backtalk.loaderPools" -}}
{{- without (include "backtalk.ownPools" . | fromYamlArray) "judge" | toYaml }}
{{- end }}

{{/* Where leased engines may be: pods of the release, behind their Services' names, and what the values add. */}}
{{- define "backtalk.engineHosts" -}}
{{- $hosts := list }}
{{- range include "backtalk.loaderPools" . | fromYamlArray }}
{{- $hosts = append $hosts (include "backtalk.name" (dict "root" $ "component" (printf "engine-%s" .))) }}
{{- end }}
{{- concat $hosts .Values.engineHosts | join "," }}
{{- end }}

{{/* (root, component, suffix?, ports, headless?, ready?) */}}
{{- define "backtalk.headlessService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "backtalk.metadata" . | nindent 2 }}
spec:
  {{- include "backtalk.families" .root }}
  {{- if .headless }}
  clusterIP: None
  {{- end }}
  {{- if not .ready }}
  publishNotReadyAddresses: true
  {{- end }}
  selector:
    {{- include "backtalk.selector" . | nindent 4 }}
  ports:
    {{- range $name, $port := .ports }}
    - { name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }} }
    {{- end }}
{{- end }}

{{- define "backtalk.families" }}
{{- with .Values.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
{{- end }}
{{- end }}
