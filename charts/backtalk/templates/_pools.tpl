{{/* Pools: what the values say about one, filled in from the defaults of all. */}}

{{/* (root, name) → the pool's settings as YAML. */}}
{{- define "backtalk.pool" -}}
{{- $values := .root.Values }}
{{- $defaults := merge (dict "model" (deepCopy $values.model)) (deepCopy $values.poolDefaults) }}
{{- $own := index $values.pools .name }}
{{- $pool := mergeOverwrite $defaults (deepCopy $own) }}
{{- /* A model that judges alone is whole, unless its own values say otherwise. */}}
{{- if ne $pool.model.name $values.model.name }}{{ $_ := set $pool.model "quantization" (($own.model | default dict).quantization | default "none") }}{{ end }}
{{- /* A pool's own place replaces that of all, also by nothing. */}}
{{- range list "nodeSelector" "affinity" }}{{ if hasKey $own . }}{{ $_ := set $pool . (index $own .) }}{{ end }}{{ end }}
{{- toYaml $pool }}
{{- end }}

{{/* Names of all policies, the first one first. */}}
{{- define "backtalk.policies" -}}
{{- concat (list .Values.policy.name) .Values.policy.others | toYaml }}
{{- end }}

{{/* (root, count) → places for so many adapters of each policy. */}}
{{- define "backtalk.adapterPlaces" -}}
{{- mul (int .count) (len (include "backtalk.policies" .root | fromYamlArray)) }}
{{- end }}

{{/* The pools that have engines of their own, as a list of names. */}}
{{- define "backtalk.ownPools" -}}
{{- range $name := list "serving" "rollout" "judge" "evaluation" }}
{{- if not (include "backtalk.pool" (dict "root" $ "name" $name) | fromYaml).shares }}
- {{ $name }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether judges share engines that tell their key from the one that loads adapters: only the built-in engine does. */}}
{{- define "backtalk.judgeAsksServing" -}}
{{- $shares := (include "backtalk.pool" (dict "root" . "name" "judge") | fromYaml).shares }}
{{- if and $shares (eq (include "backtalk.pool" (dict "root" . "name" "serving") | fromYaml).engine "builtin") }}true{{ end }}
{{- end }}

{{/* Where engines of judges alone are found, as variables; engines that judges share are found by their leases. */}}
{{- define "backtalk.judgeModel" -}}
{{- $pool := include "backtalk.pool" (dict "root" . "name" "judge") | fromYaml }}
{{- if not $pool.shares }}
BACKTALK_JUDGE_URL: http://{{ include "backtalk.name" (dict "root" . "component" "engine-judge-pods") }}:30030
BACKTALK_JUDGE_DIALECT: {{ $pool.engine }}
BACKTALK_JUDGE_MODEL: {{ $pool.model.name | quote }}
{{- end }}
{{- end }}

{{/* Whether the trainer asks engines of judges alone about wishes: it does where their model reads. */}}
{{- define "backtalk.trainerAsksJudges" -}}
{{- if and (eq .Values.judge.backend "free") (has "judge" (include "backtalk.ownPools" . | fromYamlArray)) }}true{{ end }}
{{- end }}

{{/* (root, name) → the pools that a pool's engines belong to. Those of `serving` stand in for pools that share them. */}}
{{- define "backtalk.poolsOf" -}}
{{- $names := list .name }}
{{- if eq .name "serving" }}
{{- range $name := list "judge" "evaluation" "rollout" }}
{{- if (include "backtalk.pool" (dict "root" $.root "name" $name) | fromYaml).shares }}{{ $names = append $names $name }}{{ end }}
{{- end }}
{{- end }}
{{- join "," $names }}
{{- end }}

{{/* (pool) → the folder of the model as the process sees it; empty where the image brings its own. */}}
{{- define "backtalk.modelPath" -}}
{{- ternary "/models/base" .model.path (and (not (empty .model.hub)) (empty .model.claim)) }}
{{- end }}

{{- define "backtalk.modelMounted" -}}
{{- if or .model.hub .model.claim }}yes{{ end }}
{{- end }}

{{/* (root, pool) → where the model lies: a claim that holds it, or room for what is fetched at the start. */}}
{{- define "backtalk.modelVolume" -}}
name: model
{{- if .pool.model.claim }}
persistentVolumeClaim: { claimName: {{ .pool.model.claim | quote }}, readOnly: true }
{{- else if .pool.model.storageClass }}
ephemeral:
  volumeClaimTemplate:
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: {{ .pool.model.storageClass | quote }}
      resources: { requests: { storage: {{ .pool.model.size }} } }
{{- else }}
emptyDir: { sizeLimit: {{ .pool.model.size }} }
{{- end }}
{{- end }}

{{/* (root, pool) → fetches the model from its hub before the process starts. */}}
{{- define "backtalk.fetchModel" -}}
name: fetch-model
image: {{ include "backtalk.image" (dict "root" .root "image" .root.Values.images.worker) }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
command: [python, -c, {{ .root.Files.Get "files/fetch_model.py" | toJson }}]
env:
  - { name: MODEL_HUB_ID, value: {{ .pool.model.hub | quote }} }
  - { name: MODEL_REVISION, value: {{ .pool.model.revision | quote }} }
  - { name: HF_HOME, value: /tmp }
  # The image forbids it to everything else.
  - { name: HF_HUB_OFFLINE, value: "0" }
  {{- with .pool.model.existingSecret }}
  {{- include "backtalk.secretVariable" (dict "variable" "HF_TOKEN" "secret" . "key" "token") | nindent 2 }}
  {{- end }}
resources:
  requests: { cpu: 100m, memory: 512Mi }
  limits: { memory: 2Gi }
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" true) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
  - { name: model, mountPath: /models }
{{- end }}
