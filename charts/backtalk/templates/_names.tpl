{{/* Names and labels. Selectors hold what never changes between versions of the chart. */}}

{{/*
The prefix of names. A release may be called what no Service may be: with dots, with a digit before, or too long. Such a name
is made to fit, and ends with a hash of the whole, so that two releases never have one prefix.
*/}}
{{- define "backtalk.fullname" -}}
{{- $chart := default .Chart.Name .Values.nameOverride }}
{{- $whole := default (ternary .Release.Name (printf "%s-%s" .Release.Name $chart) (contains $chart .Release.Name)) .Values.fullnameOverride }}
{{- $fitting := regexReplaceAll "^([0-9])" ($whole | replace "." "-") "b-${1}" }}
{{- if and (eq $fitting $whole) (le (len $whole) 40) }}
{{- $whole }}
{{- else }}
{{- printf "%s-%s" (trunc 31 $fitting | trimSuffix "-") (sha256sum $whole | trunc 8) }}
{{- end }}
{{- end }}

{{- define "backtalk.accountName" -}}
{{- default (ternary (include "backtalk.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{/* (root, component) → the name of that component's objects. */}}
{{- define "backtalk.name" -}}
{{- printf "%s-%s" (include "backtalk.fullname" .root) .component }}
{{- end }}

{{- define "backtalk.releaseSelector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "backtalk.selector" -}}
{{ include "backtalk.releaseSelector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of a pod: without versions, so that a new chart alone restarts nothing. */}}
{{- define "backtalk.podLabels" -}}
{{ include "backtalk.selector" . }}
app.kubernetes.io/part-of: backtalk
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "backtalk.labels" -}}
{{ include "backtalk.podLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* (root, component, suffix?) → name, namespace and labels of an object. */}}
{{- define "backtalk.metadata" -}}
name: {{ printf "%s%s" (include "backtalk.name" .) (ternary (printf "-%s" .suffix) "" (hasKey . "suffix")) | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "backtalk.labels" . | nindent 2 }}
{{- end }}

{{/* (root, image) → a reference by digest where one is given, else by tag. */}}
{{- define "backtalk.image" -}}
{{- $name := .image.repository }}
{{- $released := get (.root.Files.Get "files/release-images.yaml" | fromYaml) $name | default dict }}
{{- $digest := .image.digest }}
{{- if and (not $digest) (not .image.tag) }}{{ $digest = $released.digest }}{{ end }}
{{- if .image.registry }}{{ $name = printf "%s/%s" .image.registry $name }}
{{- else if .root.Values.images.registry }}
{{- /* A mirror of Docker's hub has images without an owner below library/. */}}
{{- $name = printf "%s/%s%s" .root.Values.images.registry (ternary "" "library/" (contains "/" $name)) $name }}
{{- else if $released.registry }}{{ $name = printf "%s/%s" $released.registry $name }}
{{- end }}
{{- if $digest }}
{{- printf "%s@%s" $name $digest }}
{{- else }}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}
