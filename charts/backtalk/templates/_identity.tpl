{{/*
How parts of a release know each other: a token for each pair of a caller and a callee, and certificates where
`tls.existingSecret` names them. A container gets the tokens of the calls that it makes and answers, and of no others.
*/}}

{{/* (root, containers, spec): adds to the pod that is being made. */}}
{{- define "backtalk.addIdentity" -}}
{{- $services := list "gateway" "collector" "judge" "trainer" "publisher" "loader" "training" "commands" }}
{{- $secret := .root.Values.tls.existingSecret }}
{{- range .containers }}
{{- $env := .env | default list }}
{{- $part := ternary "cli" .name (eq .name "commands") }}
{{- range $call := $.root.Files.Get "files/calls.json" | fromJsonArray }}
{{- if or (eq $part $call.caller) (eq $part $call.callee) }}
{{- $env = concat $env (include "backtalk.secretVariable" (dict "variable" $call.variable "secret" (include "backtalk.secretName" $.root) "key" $call.key) | fromYamlArray) }}
{{- end }}
{{- end }}
{{- if and $secret (has .name (append $services "streams")) }}
{{- range $variable, $file := dict "CA" "ca.crt" "CERT" "tls.crt" "KEY" "tls.key" }}
{{- $env = append $env (dict "name" (printf "BACKTALK_TLS_%s" $variable) "value" (printf "/etc/backtalk/tls/%s" $file)) }}
{{- end }}
{{- end }}
{{- if $env }}{{ $_ := set . "env" $env }}{{ end }}
{{- if and $secret (has .name (concat $services (list "streams" "nats" "valkey"))) }}
{{- $_ := set . "volumeMounts" (append .volumeMounts (dict "name" "tls" "mountPath" "/etc/backtalk/tls" "readOnly" true)) }}
{{- $_ := set $.spec "volumes" (append $.spec.volumes (dict "name" "tls" "secret" (dict "secretName" $secret "defaultMode" 288)) | uniq) }}
{{- end }}
{{- end }}
{{- end }}

{{/* nats-server and valkey-server ask callers for a certificate of the same authority. */}}
{{- define "backtalk.natsTls" -}}
{{- if .Values.tls.existingSecret }}
tls {
  cert_file: "/etc/backtalk/tls/tls.crt"
  key_file: "/etc/backtalk/tls/tls.key"
  ca_file: "/etc/backtalk/tls/ca.crt"
  verify: true
}
{{- end }}
{{- end }}

{{- define "backtalk.valkeyPort" -}}
{{- if .Values.tls.existingSecret -}}
[--port, "0", --tls-port, "6379", --tls-auth-clients, "yes", --tls-cert-file, /etc/backtalk/tls/tls.crt, --tls-key-file, /etc/backtalk/tls/tls.key, --tls-ca-cert-file, /etc/backtalk/tls/ca.crt]
{{- else -}}
[--port, "6379"]
{{- end }}
{{- end }}

{{/* Where processes listen, and how a pod names itself, by the family of the cluster's addresses. */}}
{{- define "backtalk.anyHost" -}}{{ ternary "::" "0.0.0.0" (eq .Values.ipFamily "IPv6") }}{{- end }}
{{- define "backtalk.anyAddress" -}}{{ ternary "[::]" "0.0.0.0" (eq .Values.ipFamily "IPv6") }}{{- end }}
{{- define "backtalk.ownAddress" -}}{{ ternary "[$(POD_IP)]" "$(POD_IP)" (eq .Values.ipFamily "IPv6") }}{{- end }}
