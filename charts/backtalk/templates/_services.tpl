{{/* The five services: what is peculiar to each. */}}

{{/* (root, user, plain, extra): the environment that every service has. Those with a lease tell commands where their health is. */}}
{{- define "backtalk.serviceVariables" -}}
{{- $own := dict "BACKTALK_HEALTH_ADDRESS" (printf "%s:30010" (include "backtalk.anyAddress" .root)) "BACKTALK_LOG_LEVEL" .root.Values.logLevel "BACKTALK_PROFILE" .root.Values.profile }}
{{- with include "backtalk.natsMonitorUrl" .root }}{{ $_ := set $own "BACKTALK_NATS_MONITOR_URL" . }}{{ end }}
{{- with .root.Values.tracing.endpoint }}{{ $_ := set $own "OTEL_EXPORTER_OTLP_ENDPOINT" . }}{{ end }}
{{ include "backtalk.podVariables" . }}
{{ include "backtalk.brokerVariables" . }}
{{ include "backtalk.blobVariables" .root }}
{{ include "backtalk.plainVariables" (dict "own" (mergeOverwrite $own .plain) "extra" .extra) }}
{{- end }}

{{- define "backtalk.natsMonitorUrl" -}}
{{- if .Values.nats.enabled -}}
http://{{ include "backtalk.name" (dict "root" . "component" "nats") }}:8222
{{- else }}{{ .Values.nats.external.monitorUrl }}{{ end }}
{{- end }}

{{- define "backtalk.hashSecret" -}}
{{- include "backtalk.secretVariable" (dict "variable" "BACKTALK_HASH_SECRET" "secret" (include "backtalk.secretName" .) "key" "hash-secret") }}
{{- end }}

{{/* (root, key): the engines' key. */}}
{{- define "backtalk.engineKey" -}}
{{- include "backtalk.secretVariable" (dict "variable" "BACKTALK_ENGINE_KEY" "secret" (include "backtalk.secretName" .root) "key" .key) }}
{{- end }}

{{/* (root, name, plain, ports, more?: text, mounts?, preStop?): the only container of a service. */}}
{{- define "backtalk.service" -}}
{{- $settings := index .root.Values .name }}
{{- $env := printf "%s\n%s" (include "backtalk.serviceVariables" (dict "root" .root "user" .name "plain" .plain "extra" $settings.env)) (.more | default "") }}
{{- include "backtalk.serviceContainer" (mergeOverwrite (dict) . (dict
  "image" .root.Values.images.services
  "command" (list "node" (printf "services/%s/dist/main.js" .name))
  "env" $env
  "resources" $settings.resources)) }}
{{- end }}
