{{- define "backtalk.streamsPod" -}}
{{- $streams := .Values.streams }}
{{- $plain := dict
  "BACKTALK_PROFILE" .Values.profile
  "BACKTALK_STREAM_REPLICAS" $streams.replicas
  "BACKTALK_TURNS_BYTES_MAX" (include "backtalk.bytes" $streams.turnsMax)
  "BACKTALK_TURNS_AGE_MAX" $streams.turnsAge }}
{{- include "backtalk.podTemplate" (dict "root" $ "component" "streams" "settings" $streams "restartPolicy" "OnFailure"
  "containers" (list (include "backtalk.streamsContainer" (dict "root" $ "plain" $plain)))) }}
{{- end }}

{{- define "backtalk.streamsContainer" -}}
name: streams
image: {{ include "backtalk.image" (dict "root" .root "image" .root.Values.images.services) }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
command: [node, services/cli/bin/backtalk.mjs, streams, ensure, --wait, '300']
env:
  {{- include "backtalk.brokerVariables" (dict "root" .root "user" "admin") | nindent 2 }}
  {{- include "backtalk.plainVariables" (dict "own" .plain "extra" dict) | trim | nindent 2 }}
resources:
  {{- toYaml .root.Values.streams.resources | nindent 2 }}
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" true) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
{{- end }}
