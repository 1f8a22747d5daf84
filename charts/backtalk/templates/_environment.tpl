{{/* What each process reads from its environment. Secrets come by reference, everything else as text. */}}

{{/* (variable, secret, key) */}}
{{- define "backtalk.secretVariable" -}}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret | quote }}
      key: {{ .key | quote }}
{{- end }}

{{/* (root, user): the broker's user of this process. */}}
{{- define "backtalk.brokerVariables" -}}
{{- $nats := .root.Values.nats -}}
- name: BACKTALK_NATS_URL
  value: {{ ternary (printf "%s://%s:4222" (ternary "tls" "nats" (not (empty .root.Values.tls.existingSecret))) (include "backtalk.name" (dict "root" .root "component" "nats"))) $nats.external.url $nats.enabled | quote }}
- name: BACKTALK_NATS_USER
  value: {{ .user }}
{{ include "backtalk.secretVariable" (dict "variable" "BACKTALK_NATS_PASSWORD" "secret" (include "backtalk.natsSecretName" .root) "key" (printf "nats-%s" .user)) }}
{{- end }}

{{- define "backtalk.valkeyVariables" -}}
{{- if .Values.valkey.enabled }}
{{ include "backtalk.secretVariable" (dict "variable" "VALKEY_PASSWORD" "secret" (include "backtalk.valkeySecretName" .) "key" "valkey-password") }}
- name: BACKTALK_VALKEY_URL
  value: {{ ternary "rediss" "redis" (not (empty .Values.tls.existingSecret)) }}://:$(VALKEY_PASSWORD)@{{ include "backtalk.name" (dict "root" . "component" "valkey") }}:6379
{{- else }}
{{ include "backtalk.secretVariable" (dict "variable" "BACKTALK_VALKEY_URL" "secret" (include "backtalk.valkeySecretName" .) "key" "valkey-url") }}
{{- end }}
{{- end }}

{{- define "backtalk.blobVariables" -}}
{{- $s3 := .Values.blobs.s3 -}}
- name: BACKTALK_BLOB_STORE
  value: {{ .Values.blobs.store | quote }}
{{- if eq .Values.blobs.store "s3" }}
- name: BACKTALK_S3_ENDPOINT
  value: {{ $s3.endpoint | quote }}
- name: BACKTALK_S3_BUCKET
  value: {{ $s3.bucket | quote }}
- name: BACKTALK_S3_REGION
  value: {{ $s3.region | quote }}
{{- if $s3.existingSecret }}
{{ include "backtalk.secretVariable" (dict "variable" "BACKTALK_S3_ACCESS_KEY" "secret" $s3.existingSecret "key" "access-key") }}
{{ include "backtalk.secretVariable" (dict "variable" "BACKTALK_S3_SECRET_KEY" "secret" $s3.existingSecret "key" "secret-key") }}
{{- end }}
{{- end }}
{{- end }}

{{- define "backtalk.podVariables" -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: BACKTALK_INSTANCE
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- end }}

{{/* (own, extra): plain variables; those that the values add win. */}}
{{- define "backtalk.plainVariables" -}}
{{- range $name, $value := mergeOverwrite (deepCopy .own) .extra }}
- name: {{ $name }}
  value: {{ include "backtalk.text" $value | quote }}
{{- end }}
{{- end }}

{{/* A value as processes read it: whole numbers with all their digits, where YAML would write a large one as 2e+06. */}}
{{- define "backtalk.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else }}{{ toString . }}{{ end }}
{{- end }}
