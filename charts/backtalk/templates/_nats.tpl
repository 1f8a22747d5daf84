{{/* nats-server's configuration: the same as on a laptop, with passwords from the environment. */}}
{{- define "backtalk.natsConfig" -}}
server_name: "backtalk"
host: "{{ include "backtalk.anyHost" . }}"
port: 4222
http: "{{ include "backtalk.anyAddress" . }}:8222"
max_payload: 8MB
# A peer that has stopped without closing is noticed within 15 seconds.
ping_interval: "5s"
ping_max: 2
write_deadline: "10s"
jetstream {
  store_dir: "/data"
  # Without it an acknowledged fact may be lost with the power.
  sync_interval: always
  max_file_store: {{ include "backtalk.bytes" .Values.nats.fileStoreMax }}
}
{{- include "backtalk.natsTls" . }}
authorization {
  users: [
  {{- range .Files.Get "files/nats-permissions.json" | fromJsonArray }}
    { user: {{ .user | quote }}, password: $NATS_PASSWORD_{{ .user | upper }}, permissions: {
      publish: { allow: {{ include "backtalk.subjects" (dict "root" $ "subjects" .publish) }}{{ with .publishDenied }}, deny: {{ include "backtalk.subjects" (dict "root" $ "subjects" .) }}{{ end }} }
      subscribe: { allow: {{ include "backtalk.subjects" (dict "root" $ "subjects" .subscribe) }} }
    } }
  {{- end }}
  ]
}
{{- end }}

{{/* (root, subjects) → the subjects as JSON; those of a policy once for each. */}}
{{- define "backtalk.subjects" -}}
{{- $all := list }}
{{- range $subject := .subjects }}
{{- if contains "@policy@" $subject }}
{{- range include "backtalk.policies" $.root | fromYamlArray }}{{ $all = append $all (replace "@policy@" . $subject) }}{{ end }}
{{- else }}
{{- $all = append $all $subject }}
{{- end }}
{{- end }}
{{- toRawJson $all }}
{{- end }}

{{- define "backtalk.natsContainer" -}}
{{- $nats := .Values.nats }}
name: nats
image: {{ include "backtalk.image" (dict "root" $ "image" .Values.images.nats) }}
imagePullPolicy: {{ .Values.images.pullPolicy }}
command: [nats-server]
args: [--config, /etc/nats/nats.conf]
env:
  {{- range .Files.Get "files/nats-permissions.json" | fromJsonArray }}
  {{- include "backtalk.secretVariable" (dict "variable" (printf "NATS_PASSWORD_%s" (upper .user)) "secret" (include "backtalk.secretName" $) "key" (printf "nats-%s" .user)) | nindent 2 }}
  {{- end }}
  {{- with get ($nats.resources.limits | default dict) "memory" | toString | regexFind "^[0-9]+[KMGT]i$" }}
  # The collector of garbage works harder before the kernel ends the process.
  - { name: GOMEMLIMIT, value: {{ div (mul (include "backtalk.bytes" . | int64) 9) 10 | quote }} }
  {{- end }}
ports:
  - { name: client, containerPort: 4222 }
  - { name: monitor, containerPort: 8222 }
startupProbe:
  httpGet: { path: /healthz, port: monitor }
  periodSeconds: 5
  failureThreshold: 120
livenessProbe:
  httpGet: { path: '/healthz?js-enabled-only=true', port: monitor }
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 4
readinessProbe:
  httpGet: { path: '/healthz?js-server-only=true', port: monitor }
  periodSeconds: 5
  timeoutSeconds: 5
resources:
  {{- toYaml $nats.resources | nindent 2 }}
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" true) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
  - { name: data, mountPath: /data }
  - { name: config, mountPath: /etc/nats, readOnly: true }
{{- end }}
