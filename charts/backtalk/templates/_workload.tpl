{{/*
Every long-running workload of the chart. Takes root, component, kind (Deployment or StatefulSet), settings (replicas,
autoscaling, nodeSelector, tolerations, affinity, pod), containers (texts), and where they are wanted: initContainers (texts), volumes,
claims, grace (seconds), progressSeconds, strategy, checksum.
*/}}
{{- define "backtalk.workload" -}}
{{- $values := .root.Values }}
{{- include "backtalk.checkClaims" . }}
{{- $scales := include "backtalk.scales" .settings }}
{{- $kept := "" }}
{{- if $scales }}{{ $kept = include "backtalk.keptReplicas" . }}{{ end -}}
apiVersion: apps/v1
kind: {{ .kind }}
metadata:
  {{- include "backtalk.metadata" . | nindent 2 }}
  {{- if $kept }}
  annotations:
    # The autoscaler's, handed over with as many as there were.
    backtalk/replicas: kept
  {{- end }}
spec:
  {{- if not $scales }}
  replicas: {{ ternary 1 .settings.replicas (kindIs "invalid" .settings.replicas) }}
  {{- else if $kept }}
  replicas: {{ $kept }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "backtalk.selector" . | nindent 6 }}
  {{- with .progressSeconds }}
  progressDeadlineSeconds: {{ . }}
  {{- end }}
  {{- if eq .kind "StatefulSet" }}
  serviceName: {{ include "backtalk.name" . }}-pods
  podManagementPolicy: Parallel
  {{- with .claims }}
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: {{ ternary "Retain" "Delete" $values.storage.keep }}
    whenScaled: Retain
  volumeClaimTemplates:
    {{- range . }}
    - {{- include "backtalk.claim" (dict "root" $.root "claim" .) | nindent 6 }}
    {{- end }}
  {{- end }}
  {{- end }}
  {{- with .strategy }}
  {{ ternary "updateStrategy" "strategy" (eq $.kind "StatefulSet") }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  template:
    {{- include "backtalk.podTemplate" . | nindent 4 }}
{{- end }}

{{- define "backtalk.podSpec" -}}
{{- $values := .root.Values -}}
serviceAccountName: {{ include "backtalk.accountName" .root | quote }}
{{- with .restartPolicy }}
restartPolicy: {{ . }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .grace | default 45 }}
securityContext:
  {{- include "backtalk.podSecurity" . | nindent 2 }}
{{- with $values.images.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with default $values.nodeSelector .settings.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := concat (.settings.tolerations | default list) $values.tolerations }}
{{- if .singleton }}
{{- /* A lost node is waited for less long than usual: a second copy beside the first does no harm. */}}
{{- range list "unreachable" "not-ready" }}
{{- $tolerations = append $tolerations (dict "key" (printf "node.kubernetes.io/%s" .) "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" 20) }}
{{- end }}
{{- end }}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    {{- /* Where it is a must, a node without the label is passed over, and one that refuses the pod would count as empty. */}}
    nodeTaintsPolicy: Honor
    whenUnsatisfiable: {{ ternary $values.topologySpread "ScheduleAnyway" (eq . "kubernetes.io/hostname") }}
    labelSelector:
      matchLabels:
        {{- include "backtalk.selector" $ | nindent 8 }}
  {{- end }}
{{- with .initContainers }}
initContainers:
  {{- range . }}
  - {{- . | trim | nindent 4 }}
  {{- end }}
{{- end }}
containers:
  {{- range .containers }}
  - {{- . | trim | nindent 4 }}
  {{- end }}
volumes:
  - name: scratch
    emptyDir: { sizeLimit: {{ .scratch | default "1Gi" }} }
  {{- with .volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/*
A pod starts again when a file that it reads at its start has changed, or a generated secret that it reads then (clients' keys are
read again while it runs, a client's own key by commands alone). Of a Secret that is somebody else's only the name is known here.
*/}}
{{- define "backtalk.podAnnotations" -}}
{{- if .kind }}
{{- $read := omit (include "backtalk.generatedSecret" .root | fromYaml) "keys.json" (ternary "" "client-key" (eq .component "commands")) | toYaml }}
checksum/secrets: {{ ternary $read .root.Values.secrets.existingSecret (empty .root.Values.secrets.existingSecret) | sha256sum }}
{{- end }}
{{- with .checksum }}
checksum/config: {{ . | sha256sum }}
{{- end }}
{{- with .root.Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* (root, claim: name, size, storageClass?) */}}
{{- define "backtalk.claim" -}}
metadata:
  name: {{ .claim.name }}
spec:
  accessModes: [ReadWriteOnce]
  {{- with default .root.Values.storage.class .claim.storageClass }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources:
    requests:
      storage: {{ .claim.size }}
{{- end }}
