{{/* Waits, and ends at once when it is told to. It has no probes: nothing in it serves anybody. */}}
{{- define "backtalk.commandsContainer" -}}
{{- $plain := dict
  "PATH" "/app/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  "BACKTALK_POLICY" .Values.policy.name
  "BACKTALK_POLICIES" (include "backtalk.policies" . | fromYamlArray | join ",")
  "BACKTALK_BASE_MODEL" .Values.model.name
  "BACKTALK_ENDPOINT" (printf "http://%s:%d/v1" (include "backtalk.name" (dict "root" $ "component" "gateway")) (int .Values.gateway.service.port)) }}
{{- if eq .Values.gateway.keys.source "secret" }}
{{- $_ := set $plain "BACKTALK_KEYS_FROM" (default (include "backtalk.secretName" .) .Values.gateway.keys.existingSecret) }}
{{- end }}
name: commands
image: {{ include "backtalk.image" (dict "root" $ "image" .Values.images.services) }}
imagePullPolicy: {{ .Values.images.pullPolicy }}
command: [sh, -c, 'trap "exit 0" TERM; sleep infinity & wait']
env:
  {{- include "backtalk.brokerVariables" (dict "root" $ "user" "cli") | nindent 2 }}
  {{- include "backtalk.hashSecret" . | nindent 2 }}
  {{- include "backtalk.blobVariables" . | nindent 2 }}
  {{- if or .Values.gateway.keys.existingSecret (eq .Values.gateway.keys.source "secret") }}
  {{- include "backtalk.secretVariable" (dict "variable" "BACKTALK_API_KEY" "secret" (default (include "backtalk.secretName" .) .Values.gateway.keys.existingSecret) "key" "client-key") | nindent 2 }}
  {{- end }}
  {{- include "backtalk.plainVariables" (dict "own" $plain "extra" .Values.commands.env) | trim | nindent 2 }}
resources:
  {{- toYaml .Values.commands.resources | nindent 2 }}
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" true) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
{{- end }}
