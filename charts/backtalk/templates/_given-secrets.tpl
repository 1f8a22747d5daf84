{{/*
Secrets that the values name, and the keys that pods read in each: (at, secret, keys). Where a value names none, `secret` is empty.
*/}}
{{- define "backtalk.givenSecrets" -}}
{{- $keys := .Values.gateway.keys }}
{{- $clients := concat (ternary (list "keys.json") list (eq $keys.source "secret")) (ternary (list "client-key") list .Values.commands.enabled) }}
- { at: secrets.existingSecret, secret: {{ .Values.secrets.existingSecret | quote }}, keys: {{ include "backtalk.neededKeys" . | fromYamlArray | toJson }} }
- { at: gateway.keys.existingSecret, secret: {{ $keys.existingSecret | quote }}, keys: {{ toJson $clients }} }
- { at: tls.existingSecret, secret: {{ .Values.tls.existingSecret | quote }}, keys: [ca.crt, tls.crt, tls.key] }
{{- if not .Values.nats.enabled }}
- { at: nats.external.existingSecret, secret: {{ .Values.nats.external.existingSecret | quote }}, keys: {{ include "backtalk.brokerKeys" . | fromYamlArray | toJson }} }
{{- end }}
{{- if not .Values.valkey.enabled }}
- { at: valkey.external.existingSecret, secret: {{ .Values.valkey.external.existingSecret | quote }}, keys: [valkey-url] }
{{- end }}
{{- if eq .Values.blobs.store "s3" }}
- { at: blobs.s3.existingSecret, secret: {{ .Values.blobs.s3.existingSecret | quote }}, keys: [access-key, secret-key] }
{{- end }}
{{- range append (include "backtalk.ownPools" . | fromYamlArray) "training" }}
{{- $model := (include "backtalk.pool" (dict "root" $ "name" .) | fromYaml).model }}
{{- if and $model.hub (not $model.claim) }}
- { at: model.existingSecret of pools.{{ . }}, secret: {{ $model.existingSecret | quote }}, keys: [token] }
{{- end }}
{{- end }}
{{- end }}

{{/* The broker's users that pods of this release are. */}}
{{- define "backtalk.brokerKeys" -}}
{{- range .Files.Get "files/nats-permissions.json" | fromJsonArray }}
{{- if or (ne .user "cli") $.Values.commands.enabled }}
- nats-{{ .user }}
{{- end }}
{{- end }}
{{- end }}
