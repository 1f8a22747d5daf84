{{/* Parts of a pod that every component has. */}}

{{/* What the "restricted" standard asks of a container. */}}
{{- define "backtalk.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: {{ .readOnly }}
capabilities:
  drop: [ALL]
{{- end }}

{{- define "backtalk.podSecurity" -}}
runAsNonRoot: true
{{- with .root.Values.runAs }}
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
{{- end }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Startup: the port is open. Liveness: the process turns, whatever it depends on does. Readiness: it can do its work now. */}}
{{- define "backtalk.serviceProbes" -}}
startupProbe:
  tcpSocket: { port: health }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /livez, port: health }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: health }
  periodSeconds: 3
  timeoutSeconds: 3
  failureThreshold: 2
{{- end }}

{{/* (root, name, image, command, env, ports, resources, mounts, preStop?): one container of a Node service. */}}
{{- define "backtalk.serviceContainer" -}}
name: {{ .name }}
image: {{ include "backtalk.image" (dict "root" .root "image" .image) }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
command: {{ toJson .command }}
env:
  {{- .env | trim | nindent 2 }}
ports:
  {{- range $name, $port := .ports }}
  - { name: {{ $name }}, containerPort: {{ $port }} }
  {{- end }}
{{ include "backtalk.serviceProbes" . }}
{{- with .preStop }}
lifecycle:
  preStop:
    exec:
      command: [sleep, {{ . | quote }}]
{{- end }}
resources:
  {{- toYaml .resources | nindent 2 }}
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" true) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
  {{- with .mounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
