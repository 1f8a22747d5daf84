{{/*
What is secret, and where it stands. Generated values are made once a render and kept over upgrades: what the cluster
holds already wins.
*/}}

{{- define "backtalk.secretName" -}}
{{- default (include "backtalk.fullname" .) .Values.secrets.existingSecret }}
{{- end }}

{{- define "backtalk.natsSecretName" -}}
{{- ternary (include "backtalk.secretName" .) .Values.nats.external.existingSecret .Values.nats.enabled }}
{{- end }}

{{- define "backtalk.valkeySecretName" -}}
{{- ternary (include "backtalk.secretName" .) .Values.valkey.external.existingSecret .Values.valkey.enabled }}
{{- end }}

{{/* Passwords start with a letter: nats-server reads a variable that starts with a digit as a number. */}}
{{- define "backtalk.generatedSecret" -}}
{{- if not (hasKey .Values "generatedSecret") }}
{{- $known := (lookup "v1" "Secret" .Release.Namespace (include "backtalk.fullname" .)).data | default dict }}
{{- $data := dict }}
{{- range $key := include "backtalk.secretKeys" . | fromYamlArray }}
{{- $_ := set $data $key (get $known $key | default (printf "b%s" (randAlphaNum 47) | b64enc)) }}
{{- end }}
{{- $hash := get $data "client-key" | b64dec | sha256sum }}
{{- $keys := dict "keys" (list (dict "sha256" $hash "tenant" "default" "user" "default")) }}
{{- $_ := set $data "keys.json" (get $known "keys.json" | default (toJson $keys | b64enc)) }}
{{- $_ := set .Values "generatedSecret" $data }}
{{- end }}
{{- toYaml .Values.generatedSecret }}
{{- end }}

{{- define "backtalk.secretKeys" -}}
- hash-secret
- client-key
- engine-key
- judge-engine-key
- valkey-password
{{- range $call := .Files.Get "files/calls.json" | fromJsonArray }}
- {{ $call.key }}
{{- end }}
{{- range $user := .Files.Get "files/nats-permissions.json" | fromJsonArray }}
- nats-{{ $user.user }}
{{- end }}
{{- end }}

{{/* The keys that pods of this release read in `secrets.existingSecret`. */}}
{{- define "backtalk.neededKeys" -}}
{{- $ownKeys := and (eq .Values.gateway.keys.source "secret") (not .Values.gateway.keys.existingSecret) }}
- hash-secret
- engine-key
{{- range $call := .Files.Get "files/calls.json" | fromJsonArray }}
- {{ $call.key }}
{{- end }}
{{- if or (has "judge" (include "backtalk.ownPools" . | fromYamlArray)) (include "backtalk.judgeAsksServing" .) }}
- judge-engine-key
{{- end }}
{{- if $ownKeys }}
- client-key
- keys.json
{{- end }}
{{- if .Values.valkey.enabled }}
- valkey-password
{{- end }}
{{- if .Values.nats.enabled }}
{{- range $user := .Files.Get "files/nats-permissions.json" | fromJsonArray }}
- nats-{{ $user.user }}
{{- end }}
{{- end }}
{{- end }}
