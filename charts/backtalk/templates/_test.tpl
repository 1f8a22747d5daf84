{{- define "backtalk.testContainer" -}}
name: request
image: {{ include "backtalk.image" (dict "root" $ "image" .Values.images.services) }}
imagePullPolicy: {{ .Values.images.pullPolicy }}
command: [node, --input-type=module, --eval, {{ .Files.Get "files/request.mjs" | toJson }}]
env:
  - { name: ENDPOINT, value: "http://{{ include "backtalk.name" (dict "root" $ "component" "gateway") }}:{{ .Values.gateway.service.port }}/v1" }
  - { name: MODEL, value: {{ .Values.policy.name | quote }} }
  {{- if or .Values.gateway.keys.existingSecret (eq .Values.gateway.keys.source "secret") }}
  {{- include "backtalk.secretVariable" (dict "variable" "API_KEY" "secret" (default (include "backtalk.secretName" .) .Values.gateway.keys.existingSecret) "key" "client-key") | nindent 2 }}
  {{- end }}
resources:
  requests: { cpu: 50m, memory: 64Mi }
  limits: { memory: 256Mi }
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" true) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
{{- end }}
