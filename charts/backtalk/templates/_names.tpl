{{/* Names and labels. Selectors hold what never changes between versions of the chart. */}}

{{- define "backtalk.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" }}
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
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
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
name: {{ include "backtalk.name" . }}{{ with .suffix }}-{{ . }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "backtalk.labels" . | nindent 2 }}
{{- end }}

{{/* (root, image) → a reference by digest where one is given, else by tag. */}}
{{- define "backtalk.image" -}}
{{- $name := .image.repository }}
{{- with default .root.Values.images.registry .image.registry }}{{ $name = printf "%s/%s" . $name }}{{ end }}
{{- if .image.digest }}
{{- printf "%s@%s" $name .image.digest }}
{{- else }}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}
