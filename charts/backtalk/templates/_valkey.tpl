{{/* Valkey takes its password from a file only, which is written where nobody else reads. */}}
{{- define "backtalk.valkeyContainer" -}}
name: valkey
image: {{ include "backtalk.image" (dict "root" $ "image" .Values.images.valkey) }}
imagePullPolicy: {{ .Values.images.pullPolicy }}
command:
  - sh
  - -c
  - umask 077 && printf 'requirepass %s\n' "$VALKEY_PASSWORD" > /tmp/password.conf && exec valkey-server /tmp/password.conf "$@"
  - valkey
args: [--bind, {{ include "backtalk.anyHost" . | quote }}, {{ include "backtalk.valkeyPort" . | trimPrefix "[" | trimSuffix "]" }}, --dir, /data, --save, "", --appendonly, "yes", --maxmemory-policy, noeviction, --maxmemory, {{ .Values.valkey.memoryMax | quote }}]
env:
  {{- include "backtalk.secretVariable" (dict "variable" "VALKEY_PASSWORD" "secret" (include "backtalk.secretName" .) "key" "valkey-password") | nindent 2 }}
ports:
  - { name: client, containerPort: 6379 }
startupProbe:
  tcpSocket: { port: client }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  tcpSocket: { port: client }
  periodSeconds: 15
  timeoutSeconds: 5
readinessProbe:
  exec:
    command: [sh, -c, 'REDISCLI_AUTH="$VALKEY_PASSWORD" valkey-cli {{ with .Values.tls.existingSecret }}--tls --cacert /etc/backtalk/tls/ca.crt --cert /etc/backtalk/tls/tls.crt --key /etc/backtalk/tls/tls.key {{ end }}ping | grep -q PONG']
  periodSeconds: 5
  timeoutSeconds: 5
resources:
  {{- toYaml .Values.valkey.resources | nindent 2 }}
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" true) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
  - { name: data, mountPath: /data }
{{- end }}
