{{/* Which components need a headless Service, and for which ports. */}}
{{- define "backtalk.headless" -}}
- { component: gateway, suffix: pods, ports: { grpc: 30020 } }
- { component: judge, suffix: pods, ports: { health: 30010 } }
- { component: training, suffix: pods, ports: { grpc: 30026 } }
{{- if .Values.nats.enabled }}
- { component: nats, suffix: pods, ports: { client: 4222, monitor: 8222 } }
- { component: nats, ready: true, ports: { client: 4222, monitor: 8222 } }
{{- end }}
{{- if .Values.valkey.enabled }}
- { component: valkey, suffix: pods, ports: { client: 6379 } }
- { component: valkey, ready: true, ports: { client: 6379 } }
{{- end }}
{{- if has "judge" (include "backtalk.ownPools" . | fromYamlArray) }}
- { component: engine-judge, ready: true, ports: { engine: 30030 } }
{{- end }}
{{- end }}

{{/* (root, component, suffix?, ports, ready?) */}}
{{- define "backtalk.headlessService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "backtalk.metadata" . | nindent 2 }}
spec:
  {{- if not .ready }}
  clusterIP: None
  publishNotReadyAddresses: true
  {{- end }}
  selector:
    {{- include "backtalk.selector" . | nindent 4 }}
  ports:
    {{- range $name, $port := .ports }}
    - { name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }} }
    {{- end }}
{{- end }}
